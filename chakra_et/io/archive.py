"""Files inside tar and zip archives."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.beginnings import is_zip
from chakra_et.io.packed import packed_file, packed_names
from chakra_et.io.repairs import Repairs, UnsoundError
from chakra_et.io.stream import BLOCK_BYTES, Stream

_NAMES_SHOWN: Final = 5
_BROKEN: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
    OSError, ValueError, OverflowError,
)  # fmt: skip


def members(path: Path) -> list[str]:
    """The names of the files in an archive; an empty list if it is none."""
    with path.open("rb") as file:
        start = file.read(512)
        file.seek(0)
        try:
            if is_zip(start):
                with zipfile.ZipFile(file) as archive:
                    names = [i.filename for i in archive.infolist() if not i.is_dir()]
                    names = packed_names(archive) or names
            else:
                with tarfile.open(fileobj=file, mode="r:*") as tar:
                    names = [member.name for member in tar if member.isfile()]
        except _BROKEN:
            return []
    return sorted({_known_as(name) for name in names})


def _known_as(name: str) -> str:
    """The name of a member as part of a path, which stays within the archive."""
    return "/".join(part for part in name.split("/") if part not in ("", ".", ".."))


def open_zip(
    path: Path, file: BinaryIO, member: str | None, repairs: Repairs | None
) -> Iterator[bytes]:
    """The content of one file in a zip archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            if member is None and (packed := packed_names(archive)):
                member = _chosen(path, packed, None)
            made = packed_file(path, archive, member) if member is not None else None
            if made is not None:
                yield made
                return
            names = {
                _known_as(item.filename): item for item in archive.infolist() if not item.is_dir()
            }
            with archive.open(names[_chosen(path, list(names), member)]) as content:
                yield from iter(lambda: content.read(BLOCK_BYTES), b"")
    except _BROKEN as error:
        _stop(path, "damaged zip archive", error, repairs)


def open_tar(
    path: Path, stream: Stream, member: str | None, repairs: Repairs | None
) -> Iterator[bytes]:
    """The content of one file in a tar archive, which is read but once.

    Without a member's name it is the only file; a second one behind it is an error.
    """
    names: list[str] = []
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for item in archive:
                if not item.isfile():
                    continue
                names.append(_known_as(item.name))
                if member is None:
                    _chosen(path, names, member)
                elif names[-1] != member:
                    continue
                yield from _content(archive, item)
                if member is not None:
                    return
    except _BROKEN as error:
        _stop(path, "damaged tar archive", error, repairs)
        return
    _chosen(path, names, member)


def _content(archive: tarfile.TarFile, item: tarfile.TarInfo) -> Iterator[bytes]:
    content: Any = archive.extractfile(item)
    while block := content.read(BLOCK_BYTES):
        yield block


def _chosen(path: Path, names: list[str], member: str | None) -> str:
    """The file to read. Raises ChakraError if that is not plain."""
    if member in names and member is not None:
        return member
    shown = ", ".join(sorted(names)[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    if member is not None:
        # `path` leads to the member already.
        raise ChakraError("no such file in the archive", path=path, remedy=f"It holds {shown}.")
    if len(names) == 1:
        return names[0]
    if not names:
        raise FormatError("the archive holds no file", path=path)
    raise FormatError(
        "the archive holds more than one file",
        path=path,
        remedy=f"Name one of them, as in {path / sorted(names)[0]}; it holds {shown}.",
    )


def _stop(path: Path, kind: str, error: Exception, repairs: Repairs | None) -> None:
    if repairs is None or repairs.strict:
        raise UnsoundError(f"{kind}: {error}", path=path, remedy="Copy it again.") from error
    repairs.mend(kind, None)
