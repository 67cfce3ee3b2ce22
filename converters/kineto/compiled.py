"""Pieces of a profile as the compiled kernel reads them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

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
from chakra_et.recording.libraries import COMMUNICATION

if TYPE_CHECKING:
    from chakra_et.kernel._native import Arrows, Column, ProfileReader

KEPT_ROLES: Final = (Role.WORK, Role.SYNC, NO_ROLE)
"""Spans of these keep their arguments, whatever they are called."""
_ANY_ID: Final = int(np.iinfo(np.int64).min)
_ARROWS: Final = {
    **dict.fromkeys(LAUNCH_FLOWS | FORWARD_FLOWS, _ANY_ID),
    **dict.fromkeys(GRAPH_FLOWS, FIRST_GRAPH_FLOW),
}


class ProfileRecords(msgspec.Struct, frozen=True):
    """Some records in columns. Codes are into the lists beside them, in order of first use.

    `columns`, `numbers` (arguments, in the order of the reader's table) and `args` are of spans;
    `counts` tells how many records of each category and phase there are; `others` are records to
    be read as JSON.
    """

    columns: dict[str, Column]
    numbers: list[Column]
    categories: list[str]
    names: list[str]
    shapes: list[bytes]
    args: list[str]
    counts: list[tuple[str, str, int]]
    arrow_categories: list[str]
    arrows: list[Arrows]
    others: bytes


class ProfilePiece(msgspec.Struct, frozen=True):
    """A piece of a file whose records the kernel has taken in, with those of pieces before it.

    `first` is the text of its elements where it is the first one: that tells who wrote the file.
    """

    reader: ProfileReader
    count: int
    first: bytes = b""

    def __len__(self) -> int:
        return self.count

    def take(self) -> ProfileRecords:
        """All records that the kernel holds; it holds none then."""
        return ProfileRecords(*self.reader.take())


class _Decoder:
    def __init__(self, reader: ProfileReader) -> None:
        self._reader = reader
        self._begun = False

    def decode_elements(self, text: memoryview, size: int) -> ProfilePiece | None:
        first, self._begun = b"" if self._begun else bytes(text[:size]), True
        count = self._reader.read(text, size)
        return None if count is None else ProfilePiece(self._reader, count, first)


@lru_cache(maxsize=1 << 16)
def tells_communication(name: str) -> bool:
    """Whether records of this name keep their arguments, whatever their role."""
    return COMMUNICATION.match(name) is not None


def profile_decoder() -> Any:
    """What reads pieces, where the kernel is there; None for a piece is one for Python."""
    module = kernel()
    if module is None:
        return None
    roles = {category: int(role) for category, role in ROLES.items()}
    kept = list(map(int, KEPT_ROLES))
    return _Decoder(
        module.ProfileReader(
            roles, list(LEFT_OUT), _ARROWS, int(Role.OP), NO_ROLE, kept, tells_communication
        )
    )
