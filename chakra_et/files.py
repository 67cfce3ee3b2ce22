"""Reading and writing execution traces (ETs) in all their forms."""

from __future__ import annotations

from pathlib import Path

from chakra_et.converters.format import View
from chakra_et.converters.formats import by_suffix
from chakra_et.errors import ChakraError
from chakra_et.inputs import open_input
from chakra_et.io.output import atomic_output
from chakra_et.model import Trace


def read(path: str | Path) -> Trace:
    """The trace in an ET file: protobuf or JSON, plain or compressed, told by content.

    Raises FormatError, with the place, for a file that is damaged or no ET, and ChakraError for one
    that cannot be read or must be converted first.
    """
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
            for block in encode(trace):
                stream.write(block)
        except ValueError as error:
            raise ChakraError(f"the trace cannot be written: {error}", path=path) from error
