"""Files as checks look at them: what their bytes tell, and the trace that they hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from chakra_et.converters.et import decode_et
from chakra_et.converters.et.format import FORMAT as ET
from chakra_et.converters.et.record_walk import file_facts
from chakra_et.converters.et.wire import WireError
from chakra_et.errors import ChakraError, FormatError
from chakra_et.file_facts import FileFacts
from chakra_et.inputs import Input, open_input
from chakra_et.io.source import first_bytes, read_all
from chakra_et.model import Trace

_ET_NAME: Final = re.compile(r".*\.(et|eg)(\.gz|\.zst)?")


def look(path: Path) -> Input | ChakraError:
    """A file as an input, or why it is none; a damaged file whose name is that of an ET is one."""
    try:
        given = open_input(path)
    except ChakraError as error:
        # Whoever calls a file .et means one: say what is wrong with its bytes.
        named = isinstance(error, FormatError) and _ET_NAME.fullmatch(path.name)
        return Input(path, str(path), ET) if named else error
    return given.refused("a trace") if given.holds_nothing else given


def is_et(given: Input) -> bool:
    """Whether a file is an ET in its own form, whose bytes tell more than its trace does."""
    return given.format is ET


def read_et(path: Path) -> tuple[FileFacts, Trace | None, str | None]:
    """What the bytes of an ET tell, and its trace, or why it has none."""
    data = read_all(path)
    facts = file_facts(path, first_bytes(path, 4), data)
    problem = facts.no_metadata or (facts.broken and f"byte {facts.broken[0]}: {facts.broken[1]}")
    if facts.size == 0:
        problem = "the file is empty"
    if problem is not None:
        return facts, None, problem
    try:
        return facts, decode_et(data[: facts.whole] if facts.cut else data), None
    except WireError as error:
        facts.broken = (error.at, str(error))
        return facts, None, f"byte {error.at}: {error}"
