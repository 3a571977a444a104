"""py-spy, attached to a running process by its pid, so that start and imports stay out of the picture."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles import folded

KINDS: dict[str, tuple[str, ...]] = {
    "gil": ("--gil", "--nonblocking"),
    "cpu": ("--native",),
    "idle": ("--native", "--idle"),
}
"""What is recorded, and py-spy's flags for it: who holds the GIL, who runs (with the frames of compiled code), and
the same with those who wait. Native frames cannot be read without stopping the process for a moment; the GIL's holder
can."""

RIGHTS = "py-spy needs root, CAP_SYS_PTRACE (docker: --cap-add SYS_PTRACE) or kernel.yama.ptrace_scope = 0"


class CannotRecord(Exception):
    """Why there is no profile, in one sentence."""


@dataclass(frozen=True)
class Samples:
    """What one recording has seen."""

    kind: str
    flags: tuple[str, ...]
    """py-spy's, without the pid and the paths."""
    intervals: int
    """How often it looked."""
    errors: int
    stacks: Counter[folded.Stack]
    speedscope: dict[str, Any]


def find_py_spy() -> str:
    if sys.platform != "linux":
        raise CannotRecord("profiles are recorded on Linux: elsewhere py-spy tells neither who waits nor native frames")
    beside_python = Path(sys.executable).parent / "py-spy"
    found = str(beside_python) if beside_python.exists() else shutil.which("py-spy")
    if found is None:
        raise CannotRecord("py-spy is not installed: `make setup` installs it")
    return found


def sample(
    pid: int, kind: str, rate: int, seconds: int, *, by_function: bool = False, py_spy: str | None = None
) -> Samples:
    """Look at the process ``rate`` times a second for so long, or until it ends.

    ``by_function``: a frame's line is the first of its function, not the one that runs.
    """
    flags = [*KINDS[kind], "--rate", str(rate), "--duration", str(seconds)]
    flags += ["--function"] if by_function else []
    with tempfile.TemporaryDirectory(prefix="triradix-profile-") as folder:
        path = Path(folder, "recording.json")
        command = [py_spy or find_py_spy(), "record", "--pid", str(pid), *flags]
        command += ["--full-filenames", "--format", "speedscope", "--output", str(path)]
        code, said, passed = _run(command)
        if code or not path.exists():
            raise CannotRecord(_reason(pid, code, said))
        document = json.loads(path.read_text(encoding="utf-8"))
    for frame in document["shared"]["frames"]:
        frame["file"] = folded.short(frame.get("file") or "?")
    document["name"] = f"{kind}: py-spy {' '.join(flags)}"
    errors = re.search(r"Errors: (\d+)", said)
    # It looks once less than this, at times that chance decides: the seconds are a mean. If the process has ended
    # meanwhile (or is ending, and still there), nobody knows how often it looked.
    intervals = rate * seconds - 1
    if not _lives(pid) or passed * rate < intervals - 4 * intervals**0.5:
        intervals = min(intervals, max(round(passed * rate), _least(kind, document)))
    stacks = folded.of_speedscope(document)
    return Samples(kind, tuple(flags), max(1, intervals), int(errors[1]) if errors else 0, stacks, document)


def _lives(pid: int) -> bool:
    """Whether it runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _least(kind: str, document: Mapping[str, Any]) -> int:
    """How often it must have looked at least, for one sample of a thread, or one of the GIL's holder, at a time."""
    samples = [len(thread["samples"]) for thread in document["profiles"]]
    return sum(samples) if kind == "gil" else max(samples, default=0)


def _run(command: Sequence[str]) -> tuple[int, str, float]:
    """Exit status, what it wrote, and the seconds from its first look on."""
    began = time.monotonic()
    said = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if "Sampling process" in line:  # attached, which takes its time
                began = time.monotonic()
    return process.returncode, "".join(said), time.monotonic() - began


def _reason(pid: int, code: int, said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("py-spy>")]
    reason = lines[0].strip().removeprefix("Error: ").rstrip(".") if lines else f"exit status {code}"
    refused = [line.strip() for line in lines if re.search("permi|ptrace|denied", line, re.IGNORECASE)]
    if refused:
        reason = re.sub(r"^(\d+|Error): ", "", refused[0])
        return f"py-spy may not look into process {pid}: {RIGHTS} ({reason})"
    if "python version" in reason:
        reason = f"it is no Python program, or none that py-spy knows ({reason})"
    return f"py-spy cannot record process {pid}: {reason}"


def stop(process: subprocess.Popen[Any]) -> None:
    """End a program as Ctrl-C does, and for good if it does not."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
