"""The simulation's page: self-contained, and it says on every picture that it is a simulation."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from triradix import pages
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import duration_text
from triradix.serving.costs import (
    BANDWIDTH_EFFICIENCY,
    COMPUTE_EFFICIENCY,
    GPUS,
    LAUNCH_SECONDS,
    LLMS,
    pool_tokens,
)
from triradix.serving.validation import HAD_CORE

_STYLES = {
    "triradix-reference": "s0",
    "triradix-cython": "s1",
    "triradix-rust": "s2",
    "sglang-python": "s3",
    "sglang-rust": "s4",
}
_COMPARED = {
    "cache µs per request": "cache time per request",
    "requests/s": "requests/s",
    "TTFT p50 ms": "TTFT p50",
    "TTFT p99 ms": "TTFT p99",
}
_BY = ("{x}: ", "{name} {y}")
Entry = dict[str, Any]


def render(report: dict[str, Any]) -> str:
    """``report``: as `triradix.serving.simulate` makes it."""
    template = Template(files("triradix.serving").joinpath("simulation.html").read_text(encoding="utf-8"))
    points: list[Entry] = report["points"]
    sweeps = list(dict.fromkeys(entry["sweep"] for entry in points))
    return template.substitute(
        style=pages.style(),
        script=pages.script(),
        settings=escape(_settings()),
        sections="".join(_section([entry for entry in points if entry["sweep"] == sweep]) for sweep in sweeps),
        repeats=f"{report['repeats']} repeat{'s' if report['repeats'] > 1 else ''}",
        rows="".join(_row(entry) for entry in points),
        compared=escape(_compared(report["validation"])),
        validation=_validation(report["validation"]),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in _facts(report)),
        command=escape(report["command"]),
    )


def _settings() -> str:
    gpus = "; ".join(
        f"{gpu.name}: {gpu.rate / 1e12:.0f} Tflop/s in bf16, {gpu.bandwidth / 1e12:.2f} TB/s" for gpu in GPUS.values()
    )
    return (
        f"{gpus}. Reached of it: {COMPUTE_EFFICIENCY:.0%} of the rate, {BANDWIDTH_EFFICIENCY:.0%} of the bandwidth, "
        f"and {LAUNCH_SECONDS * 1000:.1f} ms a step besides (assumed). Llama models of "
        f"{', '.join(llm.name + (f' on {llm.gpus} GPUs' if llm.gpus > 1 else '') for llm in LLMS.values())}."
    )


def _compared(validation: Entry | None) -> str:
    """What is known of how right it is, in a sentence."""
    if validation is None:
        return "It was not compared with the real engine on a CPU either, in this run."
    said = []
    for name, text in _COMPARED.items():
        ratios = [point["predicted"][name] / point["real"][name] for point in validation["points"]]
        said.append(f"{text} {min(ratios):.2f} to {max(ratios):.2f} times the real")
    return (
        "Of runs that SGLang's real engine also did, on this machine's CPU, it predicted "
        f"({len(validation['points'])} points, below) {', '.join(said)}."
    )


def _validation(validation: Entry | None) -> str:
    """The simulation beside the real engine, as a table."""
    if validation is None:
        return ""
    head = "".join(
        f'<th scope="col">{escape(text)}: real</th><th scope="col">predicted</th>' for text in _COMPARED.values()
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(point["shape"])}, {point["concurrency"]} at a time</th>'
        f'<td><span class="key {_STYLES[point["cache"]]}">{escape(point["cache"])}</span></td>'
        + "".join(
            f"<td>{_figure(name, point['real'][name])}</td><td>{_figure(name, point['predicted'][name])}</td>"
            for name in _COMPARED
        )
        + f"<td>{point['real'][HAD_CORE]:.0%}</td></tr>"
        for point in validation["points"]
    )
    calibration = validation["calibration"]
    return (
        "<h2>Beside the real engine, on a CPU</h2><p>SGLang's real engine with a tiny model, which runs on this "
        "machine's CPU in place of a GPU. How long a step of it takes was fitted to runs of 1 and 4 requests at a time "
        f"with {escape(calibration['cache'])}; outside of its steps a request takes {calibration['away s'] * 1000:.1f} "
        "ms. All that is predicted follows from these, for an engine that has its core to itself; the last column says "
        "how much of its steps the real one had it. The model on the same core leaves the tree less of the processor's "
        "caches than a GPU would, and than the simulation does.</p>"
        '<div class="wide"><table><thead><tr><th scope="col">requests</th><th scope="col">cache</th>'
        f'{head}<th scope="col">had a core</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _figure(name: str, value: float) -> str:
    if name == "requests/s":
        return f"{value:.1f}"
    return duration_text(value * (1000 if name.endswith("ms") else 1))


def _section(entries: list[Entry]) -> str:
    first = entries[0]
    title = f"{first['varies'].capitalize()}: {first['gpu']}, {first['llm']}"
    pool = pool_tokens(GPUS[first["gpu"]], LLMS[first["llm"]])
    figures = "".join(
        _chart(f"{what} (simulation)", entries, value)
        for what, value in (
            ("Cache time per request", lambda entry: entry["cache per request"]),
            ("Added to TTFT p99, no overlap", lambda entry: entry["added, no overlap"]["99"]),
            ("Added to TTFT p99, with overlap", lambda entry: entry["added, overlap"]["99"]),
        )
    )
    return f'<h2>{escape(title)}, a pool of {pool:,} tokens</h2><div class="figures">{figures}</div>'


def _chart(title: str, entries: list[Entry], value: Any) -> str:
    if all(value(entry) <= 0 for entry in entries):
        return f"<figure><figcaption><b>{escape(title)}</b><span>Nothing, at any point.</span></figcaption></figure>"
    series = []
    for name, style in _STYLES.items():
        mine = sorted((entry for entry in entries if entry["cache"] == name), key=lambda entry: entry["at"])
        if mine:
            # A logarithmic axis has no place for nothing.
            y = [value(entry) * 1e6 if value(entry) > 0 else None for entry in mine]
            series.append(Series(name, style, [max(entry["at"], 1) for entry in mine], y))
    values = [each for one in series for each in one.y if each is not None]
    x = log_axis([each for one in series for each in one.x], lambda number: f"{number:,.0f}")
    marks = tuple(sorted({each for one in series for each in one.x}))
    x = Axis(marks[0], max(marks[-1], marks[0] + 1), True, x.text, marks)
    return line_chart(title, series, x, log_axis(values, duration_text), _BY)


def _row(entry: Entry) -> str:
    low, high = entry["cache per request, from to"]
    cells = (
        f"{entry['at']:,}",
        _time(entry["cache per request"]),
        f"{_time(low)} – {_time(high)}",
        _time(entry["longest cache step"]),
        f"{entry['share']:.1%}",
        _time(entry["first token"]["99"]),
        _time(entry["added, overlap"]["99"]),
        _time(entry["added, no overlap"]["99"]),
        f"{entry['hit rate']:.0%}",
    )
    values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    style = _STYLES[entry["cache"]]
    name = f'<span class="key {style}">{escape(entry["cache"])}</span>'
    return f'<tr><th scope="row">{escape(entry["sweep"])}</th><td>{name}</td>{values}</tr>'


def _time(seconds: float) -> str:
    return duration_text(seconds * 1e6) if seconds > 0 else "0"


def _facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    machine = report["machine"]
    return [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores"),
        (
            "versions",
            f"triradix {report['triradix']} ({report['commit'] or 'no commit'}), SGLang 0.5.23, {machine['python']}",
        ),
        ("made", report["created"]),
        (
            "left out",
            "tokenizing, sampling, HTTP; a constant of 1 ms a step and 10 µs a request stands for the scheduler",
        ),
    ]
