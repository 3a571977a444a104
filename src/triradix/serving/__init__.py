"""SGLang's real engine on a CPU: its environment, a small model, and how it is started."""
