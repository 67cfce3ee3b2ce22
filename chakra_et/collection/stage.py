"""Where the files of a process are made, and how they get their names."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from chakra_et.collection.manifest import name_of
from chakra_et.collection.window import Window
from chakra_et.errors import OutputError
from chakra_et.io.leftovers import clean, hold, temporary_prefix

try:
    import fcntl
    import resource
except ImportError:  # Windows has other locks, and no limits.
    fcntl = resource = None  # type: ignore[assignment]

_RECORDED: Final = re.compile(r"(?:host|device|manifest)\.(\d+)\.json(?:\.gz)?")
_END_BYTES: Final = 16
"""So much at the end of a file tells whether its document ends there."""
_LEVEL: Final = 4
"""Of gzip: nearly as small as by default, and twice as fast, while the training waits."""


def recorded_in(directory: Path) -> dict[str, int]:
    """The recordings that a directory holds: for each file, when it was last changed."""
    found = {}
    with suppress(OSError):
        for path in directory.iterdir():
            if _RECORDED.fullmatch(path.name):
                with suppress(OSError):
                    found[path.name] = path.stat().st_mtime_ns
    return found


def remove_unchanged(directory: Path, before: Mapping[str, int]) -> None:
    """Remove recordings of an earlier run that a newer one has not replaced."""
    now = recorded_in(directory)
    for name, changed_ns in before.items():
        if now.get(name) == changed_ns:
            (directory / name).unlink(missing_ok=True)


class Stage:
    """A directory within the target, for files that move to the target when they are whole."""

    def __init__(self, target: Path, force: bool) -> None:
        self.target = target
        self._force = force
        self._descriptor = -1
        self._before: dict[str, int] = {}
        self.path = Path()

    def open(self) -> None:
        """Raises OutputError where it cannot be made."""
        try:
            self.target.mkdir(parents=True, exist_ok=True)
            clean(self.target)
            self._before = recorded_in(self.target)
            self.path = Path(tempfile.mkdtemp(prefix=temporary_prefix(), dir=self.target))
            self._descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise cannot_be_written(self.target, error) from error
        hold(self._descriptor)

    def close(self) -> None:
        """Take away what is left in it."""
        if self._descriptor != -1:
            os.close(self._descriptor)
            self._descriptor = -1
            shutil.rmtree(self.path, ignore_errors=True)

    def expect_free(self, rank: int) -> None:
        """Raise OutputError where the files of a rank are there, of this run or of another one."""
        there = recorded_in(self.target)
        mine = [name for name in sorted(there) if _rank(name) == rank]
        if any(there[name] != self._before.get(name) for name in mine):
            raise OutputError(
                f"another process of this run has recorded as rank {rank}",
                path=self.target,
                remedy="Give each its rank: in the variable RANK, or by init_process_group.",
            )
        if mine and not self._force:
            raise in_the_way(self.target, mine)

    def publish(self, window: Window) -> list[dict[str, Any]]:
        """Compress both files and give them their names; what a manifest says of them."""
        rank = window.place.rank
        self.expect_free(rank)
        files: list[dict[str, Any]] = []
        for view, path in (("host trace", window.host), ("profile", window.device)):
            _expect_whole(view, path)
            packed = self.path / f"{path.stem}.{rank}.json.gz"
            _compress(path, packed)
            files.append({"name": packed.name, "holds": view, "bytes": packed.stat().st_size})
        for file in files:
            (self.path / file["name"]).replace(self.target / file["name"])
        return files

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a small file whole."""
        draft = self.path / name
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(self.target / name)

    def end(self, manifest: dict[str, Any]) -> bool:
        """Write the manifest of a rank that has ended; whether it is the last one of its run."""
        ranks = range(manifest["world_size"])
        with _locked(self.target):
            self.write(name_of(manifest["rank"]), {**manifest, "final": True})
            return all(self._has_ended(name_of(rank)) for rank in ranks)

    def _has_ended(self, name: str) -> bool:
        try:
            path = self.target / name
            new = path.stat().st_mtime_ns != self._before.get(name)
            return new and bool(json.loads(path.read_text()).get("final"))
        except (OSError, ValueError):
            return False


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Let one process at a time do what follows, where the system can do that."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _rank(name: str) -> int:
    found = _RECORDED.fullmatch(name)
    assert found is not None
    return int(found[1])


def _expect_whole(view: str, path: Path) -> None:
    """Raise OutputError unless PyTorch wrote all of a file: it does not tell when it cannot."""
    limit = _largest_file()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(-min(size, _END_BYTES), os.SEEK_END)
            whole = file.read().rstrip().endswith(b"}") and (limit is None or size < limit)
    except FileNotFoundError:
        whole = False
    if whole:
        return
    free = shutil.disk_usage(path.parent).free
    room = f"{free / 1e6:.1f} MB are free there"
    if limit is not None:
        room = f"a file of this process may have {limit / 1e6:.1f} MB (ulimit -f), and {room}"
    raise OutputError(
        f"PyTorch did not write all of the {view}: {room}",
        remedy="Make room, raise the limit, or record fewer steps.",
    )


def _largest_file() -> int | None:
    """How many bytes a file of this process may have; None where nothing limits that."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY else soft


def _compress(path: Path, packed: Path) -> None:
    with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=_LEVEL) as stream:
        shutil.copyfileobj(plain, stream, 1 << 20)
    path.unlink()


def in_the_way(target: Path, names: list[str]) -> OutputError:
    """The error for recordings of another run."""
    shown = ", ".join(names[:4]) + ", …" * (len(names) > 4)
    return OutputError(
        f"recordings of another run are here ({shown})",
        path=target,
        remedy="Choose another directory, or let force=True (--force) replace them.",
    )


def cannot_be_written(path: Path, error: OSError) -> OutputError:
    """The error for a directory in which no file can be made."""
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        path=path,
        remedy="Choose a directory that can be made and has room.",
    )
