"""Pieces of a profile as the compiled kernel reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from chakra_et.columns import Mask
from chakra_et.converters.kineto.categories import (
    FIRST_GRAPH_FLOW,
    FORWARD_FLOWS,
    GRAPH_FLOWS,
    LAUNCH_FLOWS,
    LEFT_OUT,
    ROLES,
)
from chakra_et.converters.kineto.roles import NO_ROLE
from chakra_et.kernel import kernel
from chakra_et.recording import Role

if TYPE_CHECKING:
    from chakra_et.kernel._native import Arrows, Column, ProfileReader

_ANY_ID: Final = int(np.iinfo(np.int64).min)
_ARROWS: Final = {
    **dict.fromkeys(LAUNCH_FLOWS | FORWARD_FLOWS, _ANY_ID),
    **dict.fromkeys(GRAPH_FLOWS, FIRST_GRAPH_FLOW),
}


@dataclass(frozen=True)
class ProfilePiece:
    """Some records in columns. Codes are into the lists beside them, in order of first use.

    `columns` and `numbers` (arguments, in the order of the reader's table) are of spans; `counts`
    tells how many records of each category and phase there are; `others` are records to be read as
    JSON. `text` is the piece itself.
    """

    text: bytes
    reader: ProfileReader
    columns: dict[str, Column]
    numbers: list[Column]
    categories: list[str]
    names: list[str]
    shapes: list[bytes]
    counts: list[tuple[str, str, int]]
    arrow_categories: list[str]
    arrows: list[Arrows]
    others: bytes

    def __len__(self) -> int:
        return sum(count for _, _, count in self.counts)

    def args(self, wanted: Mask) -> list[str]:
        """The arguments of the spans that are wanted; only until the next piece is read."""
        return self.reader.args(wanted.view(np.uint8))


class _Decoder:
    def __init__(self, reader: ProfileReader) -> None:
        self._reader = reader

    def decode(self, text: bytes) -> ProfilePiece | None:
        found = self._reader.read(text)
        return None if found is None else ProfilePiece(text, self._reader, *found)


def profile_decoder() -> Any:
    """What reads pieces, where the kernel is there; None for a piece is one for Python."""
    module = kernel()
    if module is None:
        return None
    roles = {category: int(role) for category, role in ROLES.items()}
    return _Decoder(module.ProfileReader(roles, list(LEFT_OUT), _ARROWS, int(Role.OP), NO_ROLE))
