"""The files in what people give: single files, directories, archives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.converters.format import View
from chakra_et.errors import ChakraError, FormatError
from chakra_et.inputs import Input, open_input, rank_in_name
from chakra_et.io.beginnings import HEADER_BYTES, may_be_archive
from chakra_et.io.remote import names_below
from chakra_et.patterns import lazy_pattern
from chakra_et.shown import number_of
from chakra_et.urls import url_of

_ET_NAME: Final = lazy_pattern(r".*\.(et|eg)(\.gz|\.zst)?")
_PRECEDENCE: Final = ({View.HOST, View.DEVICE}, {View.BOTH}, {View.TRACE})
"""Of a directory, what comes first counts: the rest was made of it."""

_NAMED: Final = 5
"""So many of the files that are passed over are named."""


class PassedOver(msgspec.Struct, frozen=True):
    """A file that is no input of this conversion, and why."""

    name: str
    reason: str
    own: bool = False
    """Whether the file is a report or the like of this project."""
    unreadable: bool = False
    """Whether it is of no kind that is known, or damaged from its beginning."""


class Found(msgspec.Struct):
    """The inputs among some files, and those that were passed over."""

    inputs: list[Input] = msgspec.field(default_factory=list)
    passed_over: list[PassedOver] = msgspec.field(default_factory=list)


def find_inputs(sources: Iterable[str | Path], skip: Path | None = None) -> Found:
    """The inputs in files, directories and archives, in this order; `skip` is not entered.

    Directories are descended. In a directory or an archive, files that are no traces are passed
    over, and so are ETs that lie beside recordings. Raises ChakraError for a file that was named
    and is no trace, and where nothing is left.
    """
    found = Found()
    for source in map(Path, sources):
        names = names_in(source, skip)
        if names is None:
            _take_file(found, source)
        else:
            _take_folder(found, source, names)
    # The same file may be given by itself and with its directory.
    found.inputs = list({item.path.resolve(): item for item in found.inputs}.values())
    if not found.inputs:
        raise _nothing(list(map(Path, sources)), found)
    return found


def names_in(source: Path, skip: Path | None = None) -> list[str] | None:
    """The names of the files in a directory or an archive; None for a single file."""
    url = url_of(source)
    if url is not None:
        return names_below(url, None if skip is None else url_of(skip))
    if source.is_dir():
        return list(_walk(source, skip))
    if not source.exists():
        # Perhaps a file in an archive.
        return None
    try:
        names = _members(source) if source.is_file() else []
    except OSError as error:
        raise ChakraError(f"cannot be read: {error.strerror or error}", path=source) from error
    return names if len(names) > 1 else None


def _members(path: Path) -> list[str]:
    """The names of the files in an archive; an empty list for any other file."""
    with path.open("rb") as file:
        if not may_be_archive(file.read(HEADER_BYTES)):
            return []
    from chakra_et.io.archive import members

    return members(path)


def trace_files(source: str | Path) -> dict[int, Path]:
    """The ETs of one run by rank: of a directory (below it, if none lies in it), or one file.

    A damaged file that is called like an ET counts as one. Raises ChakraError where there is none,
    or where two are of one rank.
    """
    source = Path(source)
    names = names_in(source)
    if names is None:
        return {open_input(source).rank or 0: source}
    files = [source / name for name in names if _is_trace(source / name)]
    files = [file for file in files if file.parent == source] or files
    if not files:
        raise ChakraError(
            "no ET in this directory", path=source, remedy="Name an ET or a directory of ETs."
        )
    found: dict[int, Path] = {}
    for place, file in enumerate(sorted(files)):
        rank = rank_in_name(file)
        number = place if rank is None else rank
        if number in found:
            raise ChakraError(
                f"a second file of rank {number}",
                path=file,
                remedy="Put the files of each run into a directory of their own.",
            )
        found[number] = file
    return found


def _is_trace(path: Path) -> bool:
    try:
        return open_input(path).view is View.TRACE
    except FormatError:
        return _ET_NAME.fullmatch(path.name) is not None


def _walk(directory: Path, skip: Path | None) -> Iterator[str]:
    """The names of all files below a directory, but for those in hidden directories."""
    skipped = None if skip is None else skip.resolve()

    def refuse(error: OSError) -> None:
        raise ChakraError(
            f"cannot be read: {error.strerror or error}",
            path=error.filename,
            remedy="Check the path.",
        ) from error

    for folder, folders, files in os.walk(directory, onerror=refuse):
        place = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (skipped is None or (place / name).resolve() != skipped)
        )
        for name in sorted(files):
            if (place / name).is_file():
                yield (place / name).relative_to(directory).as_posix()


def _take_file(found: Found, path: Path) -> None:
    """Take a file that was named; it must be an input, unless this project wrote it."""
    taken = open_input(path)
    if taken.format.own:
        found.passed_over.append(PassedOver(str(path), taken.format.called, own=True))
    elif taken.view is View.NONE:
        raise taken.refused("a trace")
    else:
        found.inputs.append(taken)


def _take_folder(found: Found, folder: Path, names: list[str]) -> None:
    """Take what is an input among the files of a directory or an archive."""
    taken = []
    for name in names:
        try:
            item = open_input(folder / name, name)
        except FormatError as error:
            found.passed_over.append(PassedOver(name, error.problem, unreadable=True))
            continue
        if item.view is View.NONE:
            found.passed_over.append(PassedOver(name, item.format.called, item.format.own))
        else:
            taken.append(item)
    views = {item.view for item in taken}
    first = next((group for group in _PRECEDENCE if group & views), set())
    found.inputs += [item for item in taken if item.view in first]
    found.passed_over += [
        PassedOver(
            item.name,
            f"{item.format.called}, beside recordings",
            # Two bytes tell an ET: a file of another name may be damaged.
            unreadable=item.view is View.TRACE and not _ET_NAME.fullmatch(Path(item.name).name),
        )
        for item in taken
        if item.view not in first
    ]


def _nothing(sources: list[Path], found: Found) -> ChakraError:
    """The error for sources that hold no input."""
    count = len(found.passed_over)
    if len(sources) == 1 and sources[0].is_dir():
        what = f"no trace in this directory: none of its {count} files is a PyTorch host trace, "
        return ChakraError(
            what + "a Kineto profile or an ET",
            path=sources[0],
            remedy="Name a directory that holds the files of one run.",
        )
    first = found.passed_over[0] if found.passed_over else None
    what = f"this is {first.reason}" if first and count == 1 else "no trace in these files"
    return ChakraError(
        what, path=sources[0] if sources else None, remedy="Name the traces to convert."
    )


def told_passed_over(others: list[PassedOver]) -> str | None:
    """What a person should know of files that were passed over; not that of our own reports."""
    strange = [f"{other.name} ({other.reason})" for other in others if not other.own]
    if not strange:
        return None
    more = ", and more" * (len(strange) > _NAMED)
    return f"skipped {number_of(len(strange), 'file')}: {', '.join(strange[:_NAMED])}{more}"
