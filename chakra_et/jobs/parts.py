"""The parts of a run: traces that are made while others are not, and a record of each.

Each conversion has a directory, named by its key, with its traces and a record of what they were
made of. A trace and a record appear under their names when they are whole, the record last. So
whoever is killed leaves nothing that is half, and who performs the same conversion at the same time
writes the same bytes. When the run is published, records stay, for `--resume`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import zstandard

from chakra_et.io.output import atomic_output
from chakra_et.jobs.states import plain
from chakra_et.linker.output.report import Report
from chakra_et.run_directory import FileState, Origin, is_same, publish

PARTS: Final = ".chakra-et"
RECORD: Final = "record"
"""The name of the record in the directory of a conversion."""


class Record(msgspec.Struct):
    """What a conversion was made of, and what came of it: the state of each trace, its report."""

    inputs: list[FileState]
    outputs: list[FileState]
    reports: list[Report]


class Parts(msgspec.Struct, frozen=True):
    """The parts of one run in a folder. `target` is where its traces go when all are there."""

    folder: Path
    target: Path

    def output(self, key: str, place: int) -> Path:
        """Where a trace of a conversion lies until it is published."""
        return self.folder / key / f"{place}.et"

    def begin(self, key: str) -> None:
        """Make room for a conversion."""
        (self.folder / key).mkdir(parents=True, exist_ok=True)

    def keep(self, key: str, record: Record) -> None:
        """Say that a conversion is done: all of its traces are there."""
        with atomic_output(self.folder / key / RECORD) as stream:
            stream.write(encoded(record))

    def record(self, key: str) -> Record | None:
        """What is known of a conversion; None if it is not done, or not by this program."""
        try:
            return decoded((self.folder / key / RECORD).read_bytes())
        except OSError:
            return None

    def has(self, key: str, record: Record) -> bool:
        """Whether all traces of a conversion are there, byte for byte.

        Those that were published lie in the target; they become parts again.
        """
        for place, told in enumerate(record.outputs):
            if not self.is_kept(key, place, told):
                if not self.is_published(told):
                    return False
                self.take_back(key, place, told)
        return True

    def is_kept(self, key: str, place: int, told: FileState) -> bool:
        """Whether a trace lies among the parts, as is told of it."""
        return _is(self.output(key, place), told)

    def is_published(self, told: FileState) -> bool:
        """Whether a trace lies in the target, under the name that is told of it."""
        return bool(told.name) and _is(self.target / told.name, told)

    def take_back(self, key: str, place: int, told: FileState) -> None:
        """Let a published trace be a part, too."""
        with suppress(FileExistsError):
            _link(self.target / told.name, self.output(key, place))

    def publish(
        self,
        prefix: str,
        named: Mapping[str, tuple[str, int]],
        force: bool,
        origins: Mapping[str, Origin],
    ) -> None:
        """Let traces, by key and place, appear in the target under these names."""
        sources = {name: self.output(key, place) for name, (key, place) in named.items()}
        publish(self.target, prefix, sources, force, origins)

    def keys(self) -> set[str]:
        """The conversions that have a directory."""
        try:
            return {path.name for path in self.folder.iterdir() if path.is_dir()}
        except OSError:
            return set()

    def any_done(self) -> bool:
        """Whether there is something to go on with."""
        return any((self.folder / key / RECORD).exists() for key in self.keys())

    def clean(self, used: AbstractSet[str]) -> None:
        """Forget all but the records of the conversions that were used."""
        for key in self.keys() - used:
            self.forget(key)
        for key in self.keys():
            for trace in (self.folder / key).glob("*.et"):
                trace.unlink(missing_ok=True)

    def discard_unpublished(self) -> None:
        """Forget conversions of which no trace is published; no empty directory stays behind."""
        for key in self.keys():
            record = self.record(key)
            if record is None or not any(map(self.is_published, record.outputs)):
                self.forget(key)
        for folder in (self.folder, self.folder.parent):
            with suppress(OSError):
                folder.rmdir()

    def forget(self, key: str) -> None:
        """Take away all that is kept of a conversion."""
        shutil.rmtree(self.folder / key, ignore_errors=True)


def encoded(record: Record) -> bytes:
    """A record as it is kept."""
    data = msgspec.msgpack.encode(record, enc_hook=plain)
    return zstandard.ZstdCompressor(level=3).compress(data)


def decoded(packed: bytes) -> Record | None:
    """The record in what was kept; None if this program cannot read it."""
    try:
        data = zstandard.ZstdDecompressor().decompress(packed)
        return msgspec.msgpack.decode(data, type=Record, dec_hook=_special)
    except (zstandard.ZstdError, msgspec.DecodeError, ValueError):
        return None


def _is(path: Path, told: FileState) -> bool:
    return is_same(path, told.bytes, told.sha256)


def _link(published: Path, part: Path) -> None:
    part.unlink(missing_ok=True)
    try:
        os.link(published, part)
    except FileExistsError:
        raise
    except OSError:
        shutil.copyfile(published, part)


def _special(kind: type, value: Any) -> Any:
    """Of what a record holds, the types that msgspec does not know."""
    if getattr(kind, "__origin__", kind) is Counter:
        return Counter(value)
    dtype, shape, data = value
    return np.frombuffer(data, dtype).reshape(shape)
