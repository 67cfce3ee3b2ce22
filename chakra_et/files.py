"""Reading and writing execution traces (ETs) in all their forms."""

from __future__ import annotations

from pathlib import Path

from chakra_et.converters.format import View
from chakra_et.converters.formats import by_suffix
from chakra_et.errors import ChakraError
from chakra_et.inputs import open_input
from chakra_et.io.output import atomic_output, write_behind
from chakra_et.model import Trace, TraceSet
from chakra_et.search import trace_files


def read(path: str | Path) -> Trace:
    """The trace in an ET file: protobuf or JSON, plain or compressed, told by content.

    A directory of ETs gives a TraceSet. What a path leads to, a type checker cannot know: to it
    this is always a Trace, and `read_set` is for directories. Raises FormatError, with the place,
    for a file that is damaged or no ET, and ChakraError for one that cannot be read or must be
    converted first.
    """
    if Path(path).is_dir():
        return read_set(path)  # type: ignore[return-value]
    given = open_input(path)
    if given.view is not View.TRACE:
        called = given.format.called
        raise ChakraError(
            f"this is {called}" + ", not an ET" * (given.view is not View.NONE),
            path=path,
            remedy=given.format.remedy,
        )
    trace: Trace = given.read()
    return trace


def read_set(path: str | Path) -> TraceSet:
    """The traces of a run by rank: of the ETs in a directory (below it, if none lies in it).

    One file gives a set of one. Raises as `read`, and ChakraError where two files are of one rank.
    """
    return TraceSet({rank: trace for rank, (_, trace) in read_files(path).items()})


def read_files(path: str | Path) -> dict[int, tuple[Path, Trace]]:
    """The files of a run and their traces, by rank: the one that a trace tells, else its name."""
    found: dict[int, tuple[Path, Trace]] = {}
    for named, file in trace_files(path).items():
        trace = read(file)
        rank = named if trace.rank is None else trace.rank
        if rank in found:
            raise ChakraError(
                f"two files are of rank {rank}", path=file, remedy="Keep each run in a directory."
            )
        found[rank] = file, trace
    return found


def write(trace: Trace, path: str | Path) -> None:
    """Write a trace, whole or not at all; its name says how.

    `.json` gives JSON, any other name protobuf; a further `.gz` or `.zst` compresses. Raises
    OutputError when the file cannot be written, ChakraError when the trace cannot be told in a
    file.
    """
    encode = by_suffix(Path(path)).write
    assert encode is not None, "formats with suffixes can be written"
    with atomic_output(path) as stream:
        try:
            write_behind(stream, encode(trace))
        except ValueError as error:
            raise ChakraError(f"the trace cannot be written: {error}", path=path) from error
