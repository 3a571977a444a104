"""Options and fixtures of the suite: see README.md."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from implementations import Implementation

import triradix

_quiet: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("default", max_examples=120, stateful_step_count=40, **_quiet)
settings.register_profile("ci", max_examples=120, stateful_step_count=40, derandomize=True, **_quiet)
settings.register_profile("thorough", max_examples=2000, stateful_step_count=60, **_quiet)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("triradix")
    group.addoption(
        "--implementation",
        action="append",
        metavar="NAME|module:Class",
        help="run against this one; may be given several times (default: reference, cython, rust)",
    )
    group.addoption("--skip-missing", action="store_true", help="skip, not fail, an implementation that is not built")
    group.addoption("--thorough", action="store_true", help="long fuzzing and soaks")
    group.addoption("--walk-seed", type=int, help="run one random walk, that of this seed: replays a failure")
    group.addoption("--no-shrink", action="store_true", help="do not make the steps of a failing walk fewer")
    group.addoption("--walks", type=int, help="random walks for each implementation (default 300, thorough 6000)")


def pytest_configure(config: pytest.Config) -> None:
    # Under nohup, or in the background of a shell, they are ignored, and so by the commands that tests interrupt.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if not config.getoption("--hypothesis-profile"):
        name = "thorough" if config.getoption("--thorough") else "ci" if os.environ.get("CI") else "default"
        settings.load_profile(name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "implementation" in metafunc.fixturenames:
        names = metafunc.config.getoption("--implementation") or list(triradix.IMPLEMENTATIONS)
        records = [Implementation(name) for name in names]
        metafunc.parametrize("implementation", records, ids=str, indirect=True, scope="session")
    if "own_implementation" in metafunc.fixturenames:
        names = metafunc.config.getoption("--implementation") or list(triradix.IMPLEMENTATIONS)
        metafunc.parametrize("own_implementation", [name for name in names if name in triradix.IMPLEMENTATIONS])


@pytest.fixture(scope="session")
def implementation(request: pytest.FixtureRequest) -> Implementation:
    """The implementation under test. One that is missing fails every test that wants it."""
    record: Implementation = request.param
    try:
        record.cls  # noqa: B018
    except ImportError as error:
        if request.config.getoption("--skip-missing"):
            pytest.skip(f"{record} cannot be imported: {error}")
        pytest.fail(
            f"{record} cannot be imported: {error}\n(build it, name others with --implementation, or --skip-missing)",
            pytrace=False,
        )
    return record


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(scope="session")
def isolated(implementation: Implementation) -> Any:
    """Run a script of ``isolated/`` in a fresh interpreter with the implementation's name; its output is returned.

    ``silent``: it says nothing on stderr.
    """
    import subprocess

    folder = Path(__file__).parent

    def run(script: str, *arguments: str, silent: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(folder / "isolated" / script), implementation.name, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
        )
        assert done.returncode == 0 and not (silent and done.stderr), (
            f"{script} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        )
        return done.stdout

    return run


@pytest.fixture(scope="session")
def can_sample() -> None:
    """Skips where the system does not let py-spy look into other processes, as on many a machine without root."""
    import subprocess

    sys.path.insert(0, str(Path(__file__).parent.parent))  # profiles is no installed package
    from profiles import sampler

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            sampler.sample(process.pid, "gil", 10, 1)
        except sampler.CannotRecord as reason:
            if sampler.RIGHTS not in str(reason):
                raise
            pytest.skip(str(reason))
        finally:
            process.kill()
