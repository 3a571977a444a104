"""`make image` takes the engine that answers, tries what it built, and says what stopped it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ENGINE = """#!/bin/sh
echo "$(basename "$0") $*" >> "{log}"
case "$*" in
{cases}
esac
"""
INSPECTED = '{"OCIv1": {"config": {"Entrypoint": ["triradix", "replay"]}}}'


class Machine:
    """A PATH with engines that only write down what they are asked."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.log = folder / "bin", folder / "log"
        self.bin.mkdir()
        self.log.touch()

    def has(self, engine: str, *cases: str) -> None:
        path = self.bin / engine
        path.write_text(ENGINE.format(log=self.log, cases="\n".join([*cases, "*) ;;"])))
        path.chmod(0o755)

    def make_image(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, ROOT / ".ci" / "image", *arguments]
        return subprocess.run(command, env={"PATH": f"{self.bin}:/usr/bin:/bin"}, capture_output=True, text=True)

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    # Whatever the machine has of its own does not answer.
    for engine in ("docker", "podman", "buildah"):
        made.has(engine, "*) exit 1;;")
    return made


def test_the_first_engine_that_answers_builds_and_is_tried(machine: Machine) -> None:
    machine.has("podman")
    done = machine.make_image()
    assert done.returncode == 0, done.stderr
    information, build, replay, doctor, bare = machine.asked()[1:]  # docker's "info" comes first, and fails
    assert information == "podman info"
    assert build == f"podman build --network host --tag triradix {ROOT}"
    assert replay == "podman run --rm triradix --requests 200"
    assert doctor.startswith("podman run --rm --entrypoint triradix triradix doctor")
    assert bare.startswith("podman run --rm --entrypoint sh triradix -c test $(id -u) != 0")


def test_buildah_has_no_entry_points_of_its_own(machine: Machine) -> None:
    machine.has("buildah", '*" from "*|"from "*) echo made;;', f"*inspect*) echo '{INSPECTED}';;")
    done = machine.make_image("--engine", "buildah --root /elsewhere")
    assert done.returncode == 0, done.stderr
    asked = machine.asked()
    assert asked[0] == f"buildah --root /elsewhere bud --isolation chroot --tag triradix {ROOT}"
    run = "buildah --root /elsewhere run --isolation chroot made -- "
    assert [line.removeprefix(run).split()[0] for line in asked if line.startswith(run)] == [
        "triradix",
        "triradix",
        "sh",
    ]
    assert f"{run}triradix replay --requests 200" in asked
    assert asked[-1] == "buildah --root /elsewhere rm made"


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        ("build*) exit 1;;", "make image ARGS=--stand-in"),
        ("*doctor*) exit 1;;", "doctor --seconds 0.2 failed"),
        ("*--requests*) exit 1;;", "triradix --requests 200 failed"),
        ("*command*) exit 1;;", "failed"),
    ],
    ids=["build", "doctor", "replay", "compiler"],
)
def test_what_fails_is_named(machine: Machine, fails: str, said: str) -> None:
    machine.has("docker", fails)
    done = machine.make_image()
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert "holds no compiler" not in done.stdout


def test_what_cannot_be(machine: Machine) -> None:
    assert "can be docker, podman, buildah or none" in machine.make_image("--engine", "kaniko").stderr
    done = machine.make_image("--stand-in")
    assert done.returncode == 1
    assert "none answers" in done.stderr


@pytest.mark.parametrize(("tools", "user", "passes"), [((), 10001, True), (("gcc",), 10001, False), ((), 0, False)])
def test_the_last_trial_sees_root_and_a_compiler(
    tmp_path: Path, tools: tuple[str, ...], user: int, passes: bool
) -> None:
    """The command that is run in the image, here, with an `id` and a compiler that are planted."""
    for name, text in [("id", f"echo {user}"), *((tool, "exit 0") for tool in tools)]:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    scope: dict[str, object] = {"__name__": "image", "__file__": str(ROOT / ".ci" / "image")}
    exec((ROOT / ".ci" / "image").read_text(encoding="utf-8"), scope)
    _, *command = scope["BARE"]  # type: ignore[misc]
    assert (subprocess.run(["/bin/sh", *command], env={"PATH": str(tmp_path)}).returncode == 0) is passes
