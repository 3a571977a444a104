"""The terminal's table: what is lost first, then every row with a column for each system."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from triradix.compare.report import Report, number

_HEADS = {
    "reference": "Python",
    "cython": "Cython",
    "rust": "Rust",
    "sglang-py": "SGLang\nPython",
    "sglang-rust": "SGLang\nRust",
    "sglang-rust-raw": "raw\nbinding",
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
        console.print("[bold]Ours miss no bar and lose to no peer.[/bold]")
    console.print()
    for section in dict.fromkeys(row["section"] for row in report["rows"]):
        _print_section(section, [row for row in report["rows"] if row["section"] == section], report, console)
    for text in footnotes(report):
        console.print(Text(text, style="dim"))


def _print_section(section: str, rows: list[dict[str, Any]], report: Report, console: Console) -> None:
    systems = [each for each in report["systems"] if stands_in(each, rows)]
    with_floor = any(row["floor"] is not None for row in rows)
    table = Table(box=SIMPLE_HEAD, title=section, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    table.add_column("", ratio=1, min_width=24)
    for system in systems:
        table.add_column(_HEADS.get(system["name"], system["label"]), justify="right", no_wrap=True)
    if with_floor:
        table.add_column("floor", justify="right")
    for row in rows:
        cells: list[Text] = [_cell(row, system["name"]) for system in systems]
        if with_floor:
            cells.append(Text("" if row["floor"] is None else number(row["floor"])))
        title = Text(f"{row['title']}, {row['unit']}")
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
    text = Text(number(cell["median"]), style="bold" if cell["met"] is not None else "")
    if cell["met"] is not None:
        text.append(" ✓" if cell["met"] else " ✗", style="green" if cell["met"] else "red")
    if cell["ratio"]:
        text.append(f"\n{speed_text(cell['ratio']['median'], row['lower_is_better'])}", style="not bold dim")
    if cell["quotient"] is not None:
        mark = {True: " ✓", False: " ✗", None: ""}[cell["within_floor"]]
        text.append(f"\n{number(cell['quotient'])} f{mark}", style="not bold dim")
    return text


def speed_text(ratio: float, lower_is_better: bool = True) -> str:
    """A ratio for people."""
    if not lower_is_better or ratio >= 1 or ratio <= 0:
        return f"{ratio:.2f}×"
    return f"1/{1 / ratio:.3g}"


def footnotes(report: Report) -> list[str]:
    machine = report["machine"]
    rounds = report["rounds"]
    notes = [
        f"Medians of {rounds} rounds in turns (A B B A). Below: the ratio of ours to a peer (Rust to raw, Cython to "
        "our Rust, Python to SGLang-Py), where 1/5 means a fifth of its figure; and f, times the floor (✓: at most "
        "1.35 × the floor + 150 ns).",
        "GC is on; what the loop itself takes is subtracted, and what a process loses to others on its core left out; "
        + ("every process pinned to one core." if report["pinned"] else "no pinning to a core on this system."),
        f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}, {machine['system']}",
    ]
    for system in report["systems"]:
        if system["missing"]:
            notes.append(f"{system['label']} is not in the table: {system['missing']}")
    if report["floor_missing"]:
        notes.append(f"No floor: {report['floor_missing']}")
    return notes
