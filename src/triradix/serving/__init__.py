"""SGLang's real engine on a CPU: its environment, a small model, how it is started. And a simulated engine."""
