"""Traces of whatever people give: ETs as they are, recordings converted at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chakra_et.converters.format import View
from chakra_et.errors import ChakraError
from chakra_et.inputs import Input
from chakra_et.model import Trace, TraceSet
from chakra_et.search import find_inputs


def load(files: str | Path | Iterable[str | Path]) -> TraceSet:
    """The traces of a run, by rank: of files, directories and archives, told by content.

    ETs are read; recordings (host traces, profiles, both linked) are converted in memory, as
    `convert_files` does. The rank of an ET is that of its content, else of its name, else its
    place. Raises ChakraError where two files are of one rank, and as reading and converting do.
    """
    given = [files] if isinstance(files, (str, Path)) else list(files)
    inputs = find_inputs(given).inputs
    if all(item.view is View.TRACE for item in inputs):
        return _read(inputs)
    # Who loads ETs needs no linker.
    from chakra_et.conversion import trace_set
    from chakra_et.directory import convert_files

    return trace_set(convert_files(given, None))


def _read(inputs: list[Input]) -> TraceSet:
    traces: dict[int, Trace] = {}
    for place, item in enumerate(inputs):
        trace: Trace = item.read()
        told = item.rank if trace.rank is None else trace.rank
        rank = place if told is None else told
        if rank in traces:
            raise ChakraError(
                f"two files are of rank {rank}",
                path=item.path,
                remedy="Give the files of one run only.",
            )
        traces[rank] = trace
    return TraceSet(traces)
