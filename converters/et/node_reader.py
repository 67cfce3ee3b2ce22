"""The nodes of a file, read side by side, and one by one where a piece holds anything unusual."""

from __future__ import annotations

import numpy as np

from chakra_et.converters.et.attribute_columns import UnusualError
from chakra_et.converters.et.block_reader import BlockReader
from chakra_et.converters.et.careful_reader import CarefulReader
from chakra_et.converters.et.compiled_reading import compiled_nodes
from chakra_et.converters.et.node_columns import NodeColumns
from chakra_et.converters.et.wire import WireError, ZerosError


def read_nodes(data: bytes, at: int) -> NodeColumns:
    """The nodes of the records from `at` on. Raises WireError for a damaged one, and ZerosError."""
    found = compiled_nodes(data, at)
    if found is not None:
        return found
    blocks, careful = BlockReader(data), CarefulReader(data)
    while at < len(data):
        try:
            at = blocks.read(at)
        except ZerosError:
            raise
        except (UnusualError, WireError):
            at = careful.read(at)
    return _joined(blocks, careful)


def _joined(blocks: BlockReader, careful: CarefulReader) -> NodeColumns:
    if not len(blocks):
        return careful.finish(np.zeros(0, np.int64))
    if not len(careful):
        return blocks.finish()
    found = blocks.finish()
    return found.joined(careful.finish(found.at))
