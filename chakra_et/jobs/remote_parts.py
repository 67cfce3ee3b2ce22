"""The parts of a run that is written to a store, by URL: as `parts`, with objects for files.

An object appears when it is whole. Stores are trusted to keep what they were given: of objects,
sizes are compared, not hashes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from chakra_et.errors import OutputError
from chakra_et.io.json_text import to_json
from chakra_et.io.protected import refuse_input
from chakra_et.io.remote import file_system, remote_errors, upload
from chakra_et.jobs.parts import PARTS, RECORD, Parts, Record, decoded, encoded
from chakra_et.run_directory import (
    MANIFEST,
    FileState,
    Manifest,
    Origin,
    left_behind,
    list_run,
    manifest_in,
)
from chakra_et.urls import url_of


def parts_of(target: Path, prefix: str) -> Parts:
    """The parts of the run that is written to a directory or a URL under a prefix."""
    kind = Parts if url_of(target) is None else RemoteParts
    return kind(target / PARTS / prefix, target)


class RemoteParts(Parts, frozen=True):
    """Parts in a store; what is written lies on this machine until it is whole."""

    def output(self, key: str, place: int) -> Path:
        """Where a trace is written, by this process, before it is copied to the store."""
        return self._scratch(key) / f"{place}.et"

    def begin(self, key: str) -> None:
        """Make room for a conversion, on this machine."""
        self._scratch(key).mkdir(parents=True, exist_ok=True)

    def keep(self, key: str, record: Record) -> None:
        """Copy the traces of a conversion to the store, and say that it is done."""
        for place in range(len(record.outputs)):
            if self.output(key, place).exists():
                upload(self.output(key, place), self._url(key, f"{place}.et"))
        shutil.rmtree(self._scratch(key), ignore_errors=True)
        self._put(self._url(key, RECORD), encoded(record))

    def record(self, key: str) -> Record | None:
        """What is known of a conversion; None if it is not done, or not by this program."""
        with suppress(FileNotFoundError):
            return decoded(self._system.cat_file(self._path(key, RECORD)))
        return None

    def is_kept(self, key: str, place: int, told: FileState) -> bool:
        """Whether a trace lies among the parts, as is told of it."""
        return self._is(self._path(key, f"{place}.et"), told)

    def is_published(self, told: FileState) -> bool:
        """Whether a trace lies in the target, under the name that is told of it."""
        return bool(told.name) and self._is(self._in_target(told.name), told)

    def take_back(self, key: str, place: int, told: FileState) -> None:
        """Let a published trace be a part, too."""
        self._system.copy(self._in_target(told.name), self._path(key, f"{place}.et"))

    def publish(
        self,
        prefix: str,
        named: Mapping[str, tuple[str, int]],
        force: bool,
        origins: Mapping[str, Origin],
    ) -> None:
        """Let traces, by key and place, appear in the target under these names."""
        manifest = self._manifest()
        there = {path.rsplit("/", 1)[-1] for path in self._listed(self._in_target(""))}
        old = left_behind(self.target, there, prefix, set(named), manifest, force)
        for name in {*named, *old}:
            refuse_input(self.target / name)
        with remote_errors(str(url_of(self.target)), OutputError):
            for name in old:
                self._system.rm_file(self._in_target(name))
            for name, (key, place) in named.items():
                self._system.copy(self._path(key, f"{place}.et"), self._in_target(name))
        list_run(manifest, prefix, named, origins)
        self._put(f"{url_of(self.target)}/{MANIFEST}", to_json(manifest))

    def keys(self) -> set[str]:
        """The conversions that have objects."""
        return {path.rsplit("/", 1)[-1] for path in self._listed(self._path(), kind="directory")}

    def any_done(self) -> bool:
        """Whether there is something to go on with."""
        return any(self._system.exists(self._path(key, RECORD)) for key in self.keys())

    def clean(self, used: AbstractSet[str]) -> None:
        """Forget all but the records of the conversions that were used."""
        for key in self.keys():
            for path in self._listed(self._path(key)):
                if key not in used or path.endswith(".et"):
                    self._system.rm_file(path)

    def forget(self, key: str) -> None:
        """Take away all objects of a conversion."""
        for path in self._listed(self._path(key)):
            self._system.rm_file(path)

    @property
    def _system(self) -> Any:
        return file_system(str(url_of(self.target)))[0]

    def _scratch(self, key: str) -> Path:
        return Path(tempfile.gettempdir(), f"chakra-et-{key}")

    def _url(self, *names: str) -> str:
        return "/".join((str(url_of(self.folder)), *names))

    def _path(self, *names: str) -> str:
        return file_system(self._url(*names))[1]

    def _in_target(self, name: str) -> str:
        return file_system(f"{url_of(self.target)}/{name}")[1]

    def _listed(self, path: str, kind: str = "file") -> list[str]:
        with suppress(FileNotFoundError):
            found = self._system.ls(path, detail=True)
            return [item["name"].rstrip("/") for item in found if item["type"] == kind]
        return []

    def _is(self, path: str, told: FileState) -> bool:
        with suppress(FileNotFoundError):
            return bool(self._system.info(path)["size"] == told.bytes)
        return False

    def _put(self, url: str, data: bytes) -> None:
        system, path = file_system(url)
        with remote_errors(url, OutputError):
            system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            system.pipe_file(path, data)

    def _manifest(self) -> Manifest:
        with suppress(FileNotFoundError):
            return manifest_in(self._system.cat_file(self._in_target(MANIFEST)))
        return msgspec.convert({}, Manifest)
