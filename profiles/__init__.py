"""Who holds the GIL, who runs and who waits, and where a rewrite would pay: ``python -m profiles``."""
