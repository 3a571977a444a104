"""The sections of the table, and the bars that most rows share: what the project's trees are to reach."""

from __future__ import annotations

from triradix.compare.row import Bar

MATCH, CHANGE, MEMORY = "Matching", "Inserting, locking, evicting", "Memory and garbage collection"
SHORT, FORMS, PAGES = "Calls of 16 tokens", "Forms of a key", "Page sizes"
BATCH, THREADS = "Batches", "Threads"
TIME, FLOOR = "Memory over time", "What the machine itself takes"

RAW, SHIPPED = "sglang-rust-raw", "sglang-rust"


def bars(times_raw: float, versus: str = RAW) -> tuple[Bar, ...]:
    """Our Rust so many times as fast as the peer, Cython within 1.5 × of Rust, the reference not behind SGLang-Py."""
    label = "SGLang-Rust raw" if versus == RAW else "SGLang-Rust"
    return (
        Bar("rust", versus, 1 / times_raw, f"Rust at most 1/{times_raw:g} of {label}"),
        Bar("cython", "rust", 1.5, "Cython at most 1.5 × Rust"),
        Bar("reference", "sglang-py", 1.0, "Python at most SGLang-Py"),
    )


def at_most(limit: float, text: str, systems: tuple[str, ...] = ("rust", "cython", "reference")) -> tuple[Bar, ...]:
    """The figure itself is at most the limit."""
    return tuple(Bar(system, None, limit, text) for system in systems)


def at_least(limit: float, text: str, systems: tuple[str, ...]) -> tuple[Bar, ...]:
    return tuple(Bar(system, None, limit, text, at_least=True) for system in systems)


def tokens_text(length: int) -> str:
    return f"{length // 1024}K" if length >= 1024 else f"{length}"
