"""Who holds the GIL while threads share one prefix cache: ``python -m profiles.record`` (or ``make profile``)."""
