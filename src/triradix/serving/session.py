"""One engine of SGLang from its start to its end, and bench_serving against it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from triradix.serving.engine import BACKENDS, engine_options, variables_of
from triradix.serving.environment import variables
from triradix.serving.plan import Run, Settings, bench_flags, engine_flags
from triradix.serving.probe import PROBE

Line = dict[str, Any]

_START_SECONDS, _RUN_SECONDS = 180, 900
"""Then an engine, and a run, are given up."""
_QUIET_SECONDS = 0.4
"""For so long the probe has to write nothing: then the engine is idle."""


class EngineFailed(RuntimeError):
    """The engine or its client ended, or never answered; the message says which, and what it said last."""


@contextmanager
def engine(python: Path, model: Path, settings: Settings, cache: str, folder: Path, **more: Any) -> Iterator[Session]:
    """A running engine with this cache, and ``more`` options. ``folder`` gets its log, and what the probe finds."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        plugins = stack.enter_context(TemporaryDirectory(prefix="triradix-probe-"))
        _announce_probe(Path(plugins))
        probe = folder / "steps.jsonl"
        probe.write_text("")
        port = _free_port()
        options = engine_options(model, **engine_flags(settings)) | BACKENDS[cache] | more
        environment = variables() | variables_of(cache) | {PROBE: str(probe.absolute())}
        environment["PYTHONPATH"] += os.pathsep + plugins
        log = stack.enter_context((folder / "engine.log").open("w"))
        command = [str(python), "-m", "sglang.launch_server", "--host", "127.0.0.1", "--port", str(port)]
        server = stack.enter_context(_process([*command, *as_flags(options)], environment, stdout=log, stderr=log))
        # Its data sets go to the home folder under names that say nothing of the model: it has a home of its own.
        home = stack.enter_context(TemporaryDirectory(prefix="triradix-home-"))
        said = stack.enter_context((folder / "client.log").open("w"))
        client = stack.enter_context(
            _process(
                [str(python), "-m", "triradix.serving.client"],
                variables() | {"HOME": home},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        )
        session = Session(server, client, port, probe, folder)
        session.wait_for_start()
        yield session


class Session:
    """One engine and one client."""

    def __init__(
        self, server: subprocess.Popen[Any], client: subprocess.Popen[str], port: int, probe: Path, folder: Path
    ) -> None:
        self._server, self._client, self._port, self._probe, self._folder = server, client, port, probe, folder
        self._read = 0

    def wait_for_start(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise EngineFailed(f"the engine did not start: {self._last('engine.log')}")
            time.sleep(0.5)
        if self._hear(_START_SECONDS) != "ready":
            raise EngineFailed(f"bench_serving did not start: {self._last('client.log')}")

    def run(self, settings: Settings, run: Run, rows: str) -> tuple[Line, list[Line]]:
        """SGLang's line of the run, and all steps of the engine in it."""
        self._steps()  # what came before is nobody's
        found = self._folder / "bench_serving.jsonl"
        found.unlink(missing_ok=True)
        ours = ["--port", str(self._port), "--output-file", str(found.absolute())]
        flags = [*bench_flags(settings, run, rows), *ours]
        assert self._client.stdin is not None
        with suppress(OSError):  # a client that has ended will not answer
            self._client.stdin.write(json.dumps(flags) + "\n")
            self._client.stdin.flush()
        answer = self._hear(_RUN_SECONDS)
        if answer != "done":
            why = answer.removeprefix("failed: ") or self._last("client.log")
            raise EngineFailed(f"bench_serving failed ({run}): {why}; the engine: {self._last('engine.log')}")
        bench: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
        if bench["completed"] != settings.requests:
            answered = f"{bench['completed']} of {settings.requests} requests were answered ({run})"
            raise EngineFailed(f"{answered}; the engine: {self._last('engine.log')}")
        return bench, self._steps()

    def _steps(self) -> list[dict[str, Any]]:
        """What the probe has written since the last call, from the last flush of the cache on."""
        size, since = -1, time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            found = self._probe.stat().st_size
            if found != size:
                size, since = found, time.monotonic()
            time.sleep(0.05)
        with self._probe.open(encoding="utf-8") as file:
            file.seek(self._read)
            lines = [json.loads(line) for line in file]
            self._read = file.tell()
        flushes = [index for index, line in enumerate(lines) if "reset" in line]
        return [line for line in lines[flushes[-1] if flushes else 0 :] if "busy" in line]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v1/models", timeout=2):
                return True
        except OSError:
            return False

    def _hear(self, seconds: float) -> str:
        """The client's next line; empty if it has ended, or does not say anything for so long."""
        assert self._client.stdout is not None
        alarm = threading.Timer(seconds, self._client.kill)
        alarm.start()
        try:
            return self._client.stdout.readline().strip()
        finally:
            alarm.cancel()

    def _last(self, log: str) -> str:
        lines = (self._folder / log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(line.strip() for line in lines[-3:]) or "it said nothing"


def as_flags(options: dict[str, Any]) -> list[str]:
    """Arguments of ``sglang.Engine`` as flags of ``sglang.launch_server``."""
    flags = []
    for name, value in options.items():
        if value is False:
            continue
        flags.append(f"--{name.replace('_', '-')}")
        if value is not True:
            flags.append(str(value))
    return flags


def end_like_interrupted() -> None:
    """For a command: whoever ends it ends its engine too, however he does it."""
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, signal.default_int_handler)


@contextmanager
def _process(command: Sequence[str], environment: dict[str, str], **streams: Any) -> Iterator[subprocess.Popen[Any]]:
    """Started in a group of its own, all of which is ended at last: the engine is several processes."""
    process = subprocess.Popen(command, env=environment, start_new_session=True, **streams)
    try:
        yield process
    finally:
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, end)
                process.wait(timeout=8)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _announce_probe(folder: Path) -> None:
    """Make `triradix.serving.probe` a plugin of SGLang for whoever has this folder on its path."""
    about = folder / "triradix_probe-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: triradix-probe\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[sglang.srt.plugins]\ntriradix-probe = triradix.serving.probe:register\n")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
