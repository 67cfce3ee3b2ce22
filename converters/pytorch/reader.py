"""Reading host traces of every layout into columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from chakra_et.converters.pytorch.compiled import host_decoder
from chakra_et.converters.pytorch.distinct_io import DistinctIO
from chakra_et.converters.pytorch.forked import has_forked
from chakra_et.converters.pytorch.host_columns import FlatColumns, NestedColumns, WholeColumns
from chakra_et.converters.pytorch.layouts import FlatNode, NestedNode
from chakra_et.converters.pytorch.meaning import read_meaning
from chakra_et.converters.pytorch.unrecorded import add_unrecorded, drop_repeated_documents
from chakra_et.errors import FormatError
from chakra_et.io.json_array import WALKER, InBrackets
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import Layout, Records, missing_array, read_records
from chakra_et.io.source import head
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import HostTrace

HEAD_BYTES: Final = 1 << 18
"""How much of a file tells the layout of its nodes."""
NESTED: Final = Layout(NestedNode, "nodes", ("id",), "schema", host_decoder)
"""As windows read them; `_WHOLE` is what reads a whole file, without the kernel faster."""
_WHOLE: Final = replace(NESTED, fast=lambda: host_decoder() or InBrackets(DistinctIO()))
_FLAT: Final = Layout(FlatNode, "nodes", ("name",), "schema")
_LAYOUT = lazy_pattern(rb'"nodes"\s*:\s*\[.*?"(ctrl_deps|parent)"\s*:', re.DOTALL)


@collection_paused()
def read_host(path: str | Path, *, strict: bool = False) -> HostTrace:
    """Read a PyTorch host trace of any schema version, plain, compressed or packed.

    Damage is mended where that is possible, and counted in `repairs`; what cannot be mended is
    left out and counted. Callers that the file does not hold get a node of their own; where several
    processes wrote into it, `without_forked` gives them one.
    Raises FormatError, naming file and place, when the file is no host trace, and for any damage
    if `strict`.
    """
    start = head(path, HEAD_BYTES)
    read: Records[WholeColumns] | Records[FlatColumns]
    if is_nested(start):
        read = read_records(path, _WHOLE, WholeColumns, strict=strict)
    else:
        read = read_records(path, _FLAT, FlatColumns, strict=strict)
    return finished(path, start, read, read.columns)


def finished(
    path: str | Path, start: bytes, read: Records[Any], columns: NestedColumns | FlatColumns
) -> HostTrace:
    """The trace of columns that were read of a file that starts so. Raises as `read_host` does."""
    if not read.found:
        raise missing_array(path, NESTED, "Check that this is a PyTorch host trace.")
    unknown = _unknown_keys(start, is_nested(start))
    host = columns.finish(Path(path), read.metadata, unknown, read.repairs)
    if not host.names and read.repairs.left_out:
        kinds = ", ".join(repair.kind for repair in read.repairs.kinds.values() if repair.left_out)
        raise FormatError(
            f"nothing is left of {read.repairs.left_out} nodes: {kinds}",
            path=path,
            remedy="Record it again.",
        )
    host = read_meaning(drop_repeated_documents(host, read.starts))
    return host if has_forked(host) else add_unrecorded(host)


def is_nested(start: bytes) -> bool:
    """Whether nodes have layout B or a later one, by how the file starts."""
    match = _LAYOUT.search(start)
    return match is None or match[1] == b"ctrl_deps"


def _unknown_keys(start: bytes, nested: bool) -> list[str]:
    """Keys of the first node that no layout has: they would be lost, so they are named."""
    match = re.search(rb'"nodes"\s*:\s*\[\s*', start)
    if match is None:
        return []
    try:
        first, _ = WALKER.raw_decode(start[match.end() :].decode("latin-1"))
    except (json.JSONDecodeError, RecursionError):
        return []
    known = (NestedNode if nested else FlatNode).__struct_fields__
    return [key for key in first if key not in known] if isinstance(first, dict) else []
