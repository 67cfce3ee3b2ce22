"""The output directory of a run: all of its files or none, and no files of another run among them.

A manifest in the directory lists what was written there, by the prefix of the names. So files of
an earlier run can be told from files of other makers, which are never removed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.errors import OutputError
from chakra_et.io.json_text import from_json
from chakra_et.io.output import move_output, staging_directory, write_json
from chakra_et.io.protected import refuse_input

MANIFEST: Final = ".chakra-et.json"
_NAMED: Final = 5


class FileState(msgspec.Struct, frozen=True):
    """A file's name, size and hash."""

    name: str
    bytes: int
    sha256: str


class Origin(msgspec.Struct, frozen=True):
    """What a file of a run was when it was written, and what it was made of."""

    bytes: int
    sha256: str
    inputs: list[FileState]


class Manifest(msgspec.Struct):
    """The content of a manifest: for each prefix, the names of the files of its run.

    `origins` tells more of files that were converted, by name.
    """

    format: str = "chakra-et manifest 1"
    runs: dict[str, list[str]] = {}
    origins: dict[str, Origin] = {}


def is_part_of_a_name(prefix: str) -> bool:
    """Whether names of files may begin so, and lie in the directory that they are written to."""
    return bool(prefix) and prefix.isprintable() and not set(prefix) & set("/\\")


class RunDirectory:
    """Files that are to appear in a directory together."""

    def __init__(self, target: Path, stage: Path) -> None:
        self.target = target
        self.stage = stage
        self.sources: dict[str, Path] = {}

    def path(self, name: str) -> Path:
        """Where to write the file that gets this name."""
        return self.add(name, self.stage / name)

    def add(self, name: str, source: Path) -> Path:
        """Let a file that was written to the stage get this name; the file."""
        self.sources[name] = source
        return source


@contextmanager
def run_directory(target: Path, prefix: str, force: bool = False) -> Iterator[RunDirectory]:
    """A stage for the files of a run, which move to `target` when the block ends without an error.

    Raises OutputError where files of another run with this prefix would stay beside them; with
    `force`, those that the manifest lists are removed.
    """
    with staging_directory(target) as stage:
        run = RunDirectory(target, stage)
        yield run
        publish(target, prefix, run.sources, force)


def publish(
    target: Path,
    prefix: str,
    sources: Mapping[str, Path],
    force: bool = False,
    origins: Mapping[str, Origin] | None = None,
) -> None:
    """Move the files of a run to `target`, under the names that `sources` has them by.

    The manifest keeps their `origins`. Raises as `run_directory` does.
    """
    manifest = _read(target)
    for name in sources:
        refuse_input(target / name)
    _make_room(target, prefix, set(sources), manifest, force)
    for name, source in sources.items():
        try:
            move_output(source, target / name)
        except OutputError:
            if source.exists():
                raise
            _expect_published(target / name, (origins or {}).get(name))
    list_run(manifest, prefix, sources, origins)
    write_json(manifest, target / MANIFEST)


def _expect_published(path: Path, origin: Origin | None) -> None:
    """Expect that another run, at the same time, has published the file. Raises OutputError."""
    if origin is None or not is_same(path, origin.bytes, origin.sha256):
        raise OutputError(
            "another run was written to this directory at the same time",
            path=path.parent,
            remedy="Convert this one again, to a directory of its own.",
        )


def is_same(path: Path, count: int, sha256: str) -> bool:
    """Whether a file is there, and has so many bytes and this hash."""
    try:
        return path.stat().st_size == count and sha256_of(path) == sha256
    except OSError:
        return False


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes."""
    with path.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(1 << 20):
            found.update(block)
        return found.hexdigest()


def list_run(
    manifest: Manifest, prefix: str, names: Iterable[str], origins: Mapping[str, Origin] | None
) -> None:
    """Note in a manifest which files a run has, and of what they were made."""
    manifest.runs[prefix] = sorted(names)
    listed = {name for names in manifest.runs.values() for name in names}
    own = set(manifest.runs[prefix])
    others = {name: told for name, told in manifest.origins.items() if name not in own}
    kept = {**others, **(origins or {})}
    manifest.origins = {name: kept[name] for name in sorted(listed & kept.keys())}


def _read(target: Path) -> Manifest:
    """The manifest of a directory; an empty one where there is none that can be read."""
    try:
        return manifest_in((target / MANIFEST).read_bytes())
    except OSError:
        return Manifest()


def manifest_in(data: bytes) -> Manifest:
    """The manifest in the bytes of a file; an empty one if they are none."""
    try:
        return from_json(data, type=Manifest)
    except msgspec.DecodeError:
        return Manifest()


def _make_room(target: Path, prefix: str, names: set[str], manifest: Manifest, force: bool) -> None:
    """Refuse or remove what is left of another run."""
    there = {path.name for path in target.iterdir()}
    own = left_behind(target, there, prefix, names, manifest, force)
    for name in own:
        refuse_input(target / name)
    for name in own:
        with suppress(FileNotFoundError):
            (target / name).unlink()


def left_behind(
    target: Path, there: set[str], prefix: str, names: set[str], manifest: Manifest, force: bool
) -> set[str]:
    """Files of another run that are to be removed, of those that are `there`.

    `names` are those that will be written; other prefixes lose them in the manifest. Raises
    OutputError where files may not be removed.
    """
    ranked = re.compile(re.escape(prefix) + r"\.\d+\.et(?:\.gz|\.zst)?")
    own = there & set(manifest.runs.get(prefix, ())) - names
    others = {name for name in there if ranked.fullmatch(name)} - names - own
    taken = {
        name
        for other, listed in manifest.runs.items()
        if other != prefix
        for name in names & set(listed) & there
    }
    if others or ((own or taken) and not force):
        raise _in_the_way(target, own | taken, others, force)
    for listed in manifest.runs.values():
        listed[:] = [name for name in listed if name not in taken]
    return own


def _in_the_way(target: Path, own: set[str], others: set[str], force: bool) -> OutputError:
    names = sorted(others if force else own | others)
    shown = ", ".join(names[:_NAMED]) + ", …" * (len(names) > _NAMED)
    if others:
        remedy = "Choose another directory, or remove them yourself: no manifest lists them."
    else:
        remedy = "Choose another directory, or replace that run with --force."
    return OutputError(f"files of another run are here ({shown})", path=target, remedy=remedy)
