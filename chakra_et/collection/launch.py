"""Running a program so that its training is recorded, and saying what came of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from chakra_et.collection.manifest import FORMAT
from chakra_et.collection.notes import ENDED, STEPS, TORCH, Note, read_notes
from chakra_et.collection.settings import Settings
from chakra_et.collection.stage import in_the_way, recorded_in, remove_unchanged
from chakra_et.errors import ChakraError
from chakra_et.io.leftovers import clean
from chakra_et.io.output import staging_directory

_STARTUP: Final = Path(__file__).parent / "startup"


@dataclass
class Outcome:
    """How a program ended, and what was recorded of it."""

    exit_code: int
    manifests: list[dict[str, Any]]
    problems: list[str]


def launch(command: list[str], settings: Settings) -> Outcome:
    """Run a command; record each of its processes in which an optimizer steps.

    Settings reach all Python processes that it starts through the environment. Raises ChakraError
    where the command cannot be started, or the output is in use; then nothing runs.
    """
    target = Path(settings.directory)
    program = _program(command)
    before = recorded_in(target)
    if before and not settings.force:
        raise in_the_way(target, sorted(before))
    with staging_directory(target), tempfile.TemporaryDirectory(prefix="chakra-") as notes:
        asked = replace(settings, directory=str(target.resolve()), notes=notes)
        code = _run([program, *command[1:]], _environment(asked))
        clean(target)
        found = read_notes(Path(notes))
    manifests = _manifests(target, before)
    if manifests:
        remove_unchanged(target, before)
    return Outcome(code, manifests, _problems(manifests, found, settings))


def _program(command: list[str]) -> str:
    found = shutil.which(command[0])
    if found is None:
        raise ChakraError(
            f"there is no program {command[0]!r} to run",
            remedy="Name one as you do without this, such as: python train.py",
        )
    return found


def _environment(settings: Settings) -> dict[str, str]:
    there = os.environ.get("PYTHONPATH")
    paths = [str(_STARTUP), *([there] if there else [])]
    told = {"PYTHONPATH": os.pathsep.join(paths), "CHAKRA_COLLECT": settings.encoded()}
    return {**os.environ, **told}


def _run(command: list[str], environment: Mapping[str, str]) -> int:
    """Run it to its end, whatever we are told meanwhile; its exit code, as shells have it."""
    with _signals_passed_on() as running:
        process = subprocess.Popen(command, env=dict(environment))
        running.append(process)
        code = process.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _signals_passed_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Ctrl-C reaches the program by itself; SIGTERM is handed to it."""
    running: list[subprocess.Popen[bytes]] = []

    def hand_over(number: int, _frame: object) -> None:
        for process in running:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: hand_over}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield running
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _manifests(target: Path, before: Mapping[str, int]) -> list[dict[str, Any]]:
    """The manifests that are new, by rank."""
    now = recorded_in(target)
    found = []
    for name in sorted(now):
        if name.startswith("manifest") and now[name] != before.get(name):
            content = json.loads((target / name).read_text())
            if content.get("format") == FORMAT:
                found.append(content)
    return sorted(found, key=lambda manifest: int(manifest["rank"]))


def _problems(manifests: list[dict[str, Any]], notes: list[Note], settings: Settings) -> list[str]:
    """What a person should know, beside what manifests say."""
    recorded = {manifest["rank"] for manifest in manifests}
    told = {problem for manifest in manifests for problem in manifest["problems"]}
    found = []
    for note in notes:
        who = f"process {note.process}" if note.rank is None else f"rank {note.rank}"
        found += [f"{who}: {text}" for text in note.problems if text not in told]
        if note.reached == STEPS and note.rank not in recorded:
            found.append(
                f"{who}: ended without notice before its steps were recorded (killed, or os._exit)"
            )
    world = max((int(manifest["world_size"]) for manifest in manifests), default=0)
    missing = sorted(set(range(world)) - recorded)
    if missing:
        found.append(f"no recording of rank {', '.join(map(str, missing))} of {world}")
    if not manifests and not any(note.reached in (STEPS, ENDED) for note in notes):
        found.append(_untouched(notes))
    return found


def _untouched(notes: list[Note]) -> str:
    """Why no process has counted a step."""
    if not notes:
        return (
            "nothing was recorded: no Python of this command has read PYTHONPATH; start it "
            "without -I, -E and -S"
        )
    if not any(note.reached == TORCH for note in notes):
        return "nothing was recorded: the program has not imported torch.optim"
    return (
        "nothing was recorded: no optimizer has stepped; to record anything but training, call "
        "chakra_et.collect in the script (docs/recording.md)"
    )
