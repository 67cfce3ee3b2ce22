"""Pieces of a host trace as the compiled kernel reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chakra_et.kernel import kernel

if TYPE_CHECKING:
    from chakra_et.kernel._native import Column, HostReader, Operand, Told


@dataclass(frozen=True)
class HostPiece:
    """Some nodes in columns. Codes are into the lists beside them, in order of first use.

    `operands` are distinct inputs and outputs: values, shapes and types, and `strides` of each;
    `told` are the attributes that only some nodes have.
    """

    columns: dict[str, Column]
    names: list[str]
    op_schemas: list[str]
    operands: list[Operand]
    strides: list[bytes]
    told: list[Told]

    def __len__(self) -> int:
        return len(self.columns["id"])


class _Decoder:
    def __init__(self, reader: HostReader) -> None:
        self._reader = reader

    def decode(self, text: bytes) -> HostPiece | None:
        found = self._reader.read(text)
        return None if found is None else HostPiece(*found)


def host_decoder() -> Any:
    """What reads pieces, where the kernel is there; None for a piece is one for Python."""
    module = kernel()
    return None if module is None else _Decoder(module.HostReader())
