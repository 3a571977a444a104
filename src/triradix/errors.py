"""The two exceptions that every implementation shares; all others are Python's own."""


class StaleNodeError(LookupError):
    """A node was used after its page was evicted, or after ``reset()``. It stays stale for good."""


class IntegrityError(AssertionError):
    """``check()`` found a broken invariant; the message names it. Never the caller's fault."""
