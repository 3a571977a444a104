"""The terminal's table: what is lost first, then every row with a column for each system."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from triradix.compare.report import Report, apart, number, speed_text

_HEADS = {
    "reference": "Python",
    "cython": "Cython",
    "rust": "Rust",
    "sglang-py": "SGLang\nPython",
    "sglang-rust": "SGLang\nRust",
    "sglang-rust-raw": "SGLang\nRust raw",
}


def print_table(report: Report, console: Console) -> None:
    lost = [(row["title"], sentence) for row in report["rows"] for sentence in row["lost"]]
    judged = sum(cell["met"] is not None for row in report["rows"] for cell in row["cells"].values())
    if lost:
        console.print(
            f"[bold]Bars missed, peers ahead: {len({title for title, _ in lost})} of {len(report['rows'])} rows[/bold]"
        )
        last = None
        for title, sentence in lost:
            if title != last:
                console.print(Text(title, style="bold"))
            console.print(Text(f"  {sentence}"), soft_wrap=False)
            last = title
    elif judged:
        console.print(f"[bold]{nothing_lost(report)}.[/bold]")
    console.print()
    for section in dict.fromkeys(row["section"] for row in report["rows"]):
        _print_section(section, [row for row in report["rows"] if row["section"] == section], report, console)
    for text in footnotes(report):
        console.print(Text(text, style="dim"))


def nothing_lost(report: Report) -> str:
    peers = any(system["version"] and not system["ours"] for system in report["systems"])
    return "Ours miss no bar and lose to no peer" if peers else "Ours miss no bar; no peer was measured"


def _print_section(section: str, rows: list[dict[str, Any]], report: Report, console: Console) -> None:
    systems = [each for each in report["systems"] if stands_in(each, rows)]
    with_floor = any(row["floor"] is not None for row in rows)
    table = Table(box=SIMPLE_HEAD, title=section, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    table.add_column("", ratio=1, min_width=24)
    for system in systems:
        table.add_column(_HEADS.get(system["name"], system["label"]), justify="right", no_wrap=True)
    if with_floor:
        table.add_column("floor", justify="right", no_wrap=True)
    for row in rows:
        cells: list[Text] = [_cell(row, system["name"]) for system in systems]
        if with_floor:
            cells.append(Text("" if row["floor"] is None else number(row["floor"])))
        title = Text(title_text(row))
        if row["bar"]:
            title.append(f"\n{row['bar']['text']}", style="dim")
        table.add_row(title, *cells)
    console.print(table)


def stands_in(system: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Whether a section has a column for the system: one of ours always, a peer if it does any of the rows."""
    cells = [row["cells"][system["name"]] for row in rows if system["name"] in row["cells"]]
    return any(system["ours"] or cell["median"] is not None for cell in cells)


def _cell(row: dict[str, Any], name: str) -> Text:
    cell = row["cells"].get(name)
    if cell is None or cell["median"] is None:
        return Text("–", style="dim")
    text = Text(median_text(cell), style="bold" if cell["met"] is not None else "")
    if cell["met"] is not None:
        text.append(" ✓" if cell["met"] else " ✗", style="green" if cell["met"] else "red")
    text.append(f"\n{quartiles_text(cell)}", style="not bold dim")
    if cell["ratio"]:
        text.append(f"\n{ratio_to_peer(row, cell)}\n({interval_text(row, cell)})", style="not bold dim")
    if cell["quotient"] is not None:
        mark = {True: " ✓", False: " ✗", None: ""}[cell["within_floor"]]
        text.append(f"\n{number(cell['quotient'])} f{mark}", style="not bold dim")
    return text


def title_text(row: dict[str, Any]) -> str:
    return f"{row['title']}, {row['unit']}" + (" (on every core)" if row["every_core"] else "")


def median_text(cell: dict[str, Any]) -> str:
    """With as many digits as it takes to look different from a bar that it misses."""
    return apart(cell["median"], _limits_missed(cell, None), number)


def ratio_to_peer(row: dict[str, Any], cell: dict[str, Any]) -> str:
    """The same of the ratio below."""
    return apart(
        cell["ratio"]["median"],
        _limits_missed(cell, cell["ratio"]["versus"]),
        lambda ratio, digits: speed_text(ratio, digits, row["lower_is_better"]),
    )


def quartiles_text(cell: dict[str, Any]) -> str:
    return f"{number(cell['q1'])}–{number(cell['q3'])}"


def interval_text(row: dict[str, Any], cell: dict[str, Any]) -> str:
    """Where the ratio lies with 95 % confidence."""
    low, high = (speed_text(cell["ratio"][end], lower_is_better=row["lower_is_better"]) for end in ("low", "high"))
    return f"{low}–{high}"


def _limits_missed(cell: dict[str, Any], versus: str | None) -> list[float]:
    return [bar["limit"] for bar in cell["bars"] if bar["versus"] == versus and not bar["met"]]


BUSY = 0.25
"""What load of other programs, of all cores, is worth a word."""
_BESIDE = (
    ("rust", "sglang-rust-raw", "Rust to SGLang-Rust raw"),
    ("cython", "rust", "Cython to our Rust"),
    ("reference", "sglang-py", "Python to SGLang-Py"),
)


def ratios_text(report: Report) -> str:
    """What the ratios below our figures are; "" if there are none."""
    sections: dict[tuple[str, str], list[str]] = {}
    for row in report["rows"]:
        for name, cell in row["cells"].items():
            if cell["ratio"]:
                sections.setdefault((name, cell["ratio"]["versus"]), []).append(row["section"])
    if not sections:
        return ""
    usual = {(ours, theirs): text for ours, theirs, text in _BESIDE}
    beside = ", ".join(text for pair, text in usual.items() if pair in sections)
    others: dict[str, list[str]] = {}
    for (ours, theirs), named in sections.items():
        if (ours, theirs) not in usual:
            for section in dict.fromkeys(named):
                others.setdefault(section, []).append(f"{_label(report, ours)} to {_label(report, theirs)}")
    for section, pairs in others.items():
        beside += f"{'; ' if beside else ''}in “{section}” {', '.join(pairs)}"
    return (
        f"the ratio ({beside}), where 1/5 means a fifth of its figure, with its interval of 95 % confidence (of "
        "fewer than six rounds: from the least to the greatest)"
    )


def _label(report: Report, name: str) -> str:
    label: str = next(system["label"] for system in report["systems"] if system["name"] == name)
    return label.removesuffix(" (ours)")


def footnotes(report: Report) -> list[str]:
    machine = report["machine"]
    there = {system["name"] for system in report["systems"] if system["version"]}
    ratios = f"{text}; " if (text := ratios_text(report)) else ""
    notes = [
        f"Medians of {report['rounds']} rounds in turns (A B B A); ✓ or ✗ beside them: whether it meets its bars. "
        f"Below: the quartiles; {ratios}and the quotient to the floor (in a terminal f; ✓: at most 1.35 × the floor "
        "+ 150 ns).",
        "GC is on; what the loop itself takes is subtracted, and what a process loses to others on its core left out; "
        + (
            "every process pinned to one core, but in the rows that say “on every core”."
            if report["pinned"]
            else "no pinning to a core on this system."
        ),
        f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}, {machine['system']}.",
    ]
    if report["load"] > BUSY * machine["cores"]:
        notes.append(
            f"Other programs kept the machine busy (a load of {report['load']:.1f} on {machine['cores']} cores when it "
            "began): the rows on every core say little then."
        )
    if "sglang-rust-raw" in there:
        notes.insert(1, "SGLang-Rust raw is SGLang's Rust tree without the Python that SGLang puts around it.")
    reasons: dict[str, list[str]] = {}
    for system in report["systems"]:
        if system["missing"]:
            reasons.setdefault(system["missing"], []).append(system["label"])
    for reason, labels in reasons.items():
        notes.append(f"{', '.join(labels)} {'is' if len(labels) == 1 else 'are'} not in the table: {reason}")
    if report["floor_missing"]:
        notes.append(f"No floor: {report['floor_missing']}")
    return notes
