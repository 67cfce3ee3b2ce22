"""Host traces as the compiled kernel reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from chakra_et.columns import Mask
from chakra_et.kernel import kernel
from chakra_et.recording.packed_texts import PackedTexts

if TYPE_CHECKING:
    from chakra_et.kernel._native import Column, HostReader, Told

_SIDES: Final = ("inputs", "outputs")


class HostNodes(msgspec.Struct, frozen=True):
    """Some nodes in columns. Codes are into the lists beside them, in order of first use.

    `texts` are distinct inputs and outputs; `told` are the attributes that only some nodes have.
    """

    columns: dict[str, Column]
    names: list[str]
    op_schemas: list[str]
    texts: PackedTexts
    strides: list[bytes]
    told: list[Told]

    def select(self, keep: Mask) -> HostNodes:
        """Some of the nodes, with the texts that these have."""
        columns = {name: column[keep] for name, column in self.columns.items()}
        codes, places = np.unique(
            np.concatenate([columns[side] for side in _SIDES]), return_inverse=True
        )
        for side, part in zip(_SIDES, np.split(places.astype(np.int32), 2), strict=True):
            columns[side] = part
        place, told = np.cumsum(keep) - 1, []
        for name, declared, rows, values in self.told:
            chosen = np.flatnonzero(keep[rows])
            if len(chosen):
                kept = [values[k] for k in chosen.tolist()]
                told.append((name, declared, place[rows[chosen]], kept))
        return replace(self, columns=columns, texts=self.texts.select(codes), told=told)

    def __len__(self) -> int:
        return len(self.columns["id"])


class HostPiece(msgspec.Struct, frozen=True):
    """A piece of a file whose nodes the kernel has taken in, with those of pieces before it."""

    reader: HostReader
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self) -> HostNodes:
        """All nodes that the kernel holds; it holds none then."""
        columns, names, op_schemas, texts, strides, told = self.reader.take()
        return HostNodes(columns, names, op_schemas, PackedTexts(*texts), strides, told)


class _Decoder:
    def __init__(self, reader: HostReader) -> None:
        self._reader = reader

    def decode_elements(self, text: memoryview, size: int) -> HostPiece | None:
        count = self._reader.read(text, size)
        return None if count is None else HostPiece(self._reader, count)


def host_decoder() -> Any:
    """What reads pieces, where the kernel is there; None for a piece is one for Python."""
    module = kernel()
    return None if module is None else _Decoder(module.HostReader())
