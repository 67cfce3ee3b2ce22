"""Pieces of a host trace of which each distinct text of inputs or outputs is decoded once.

Half of them repeat within a piece; most of these are empty.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.pytorch.layouts import HostAttr, HostIO

_NONE: Final = msgspec.Raw(b"{}")
_ID_LIMIT: Final = 1 << 64


class RawNode(msgspec.Struct, gc=False):
    """A node of layouts B to E; inputs and outputs are text."""

    id: int
    name: str
    ctrl_deps: int = 0
    inputs: msgspec.Raw = _NONE
    outputs: msgspec.Raw = _NONE
    attrs: list[HostAttr] = msgspec.field(default_factory=list)
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


_NODES: Final = msgspec.json.Decoder(list[RawNode])
_IOS: Final = msgspec.json.Decoder(list[HostIO])


class RawPiece(msgspec.Struct, frozen=True):
    """Some nodes, the distinct ones of their inputs and outputs, and which of these each has."""

    nodes: list[RawNode]
    ios: list[HostIO]
    codes: dict[str, npt.NDArray[np.int32]]

    def __len__(self) -> int:
        return len(self.nodes)


class DistinctIO:
    """A decoder of pieces. `ios` counts the texts of inputs and outputs that were decoded."""

    def __init__(self) -> None:
        self.ios = 0

    def decode(self, text: bytes) -> RawPiece | None:
        """The piece; None for one that the decoder of whole nodes has to look at.

        Raises msgspec.DecodeError or RecursionError for what is no JSON.
        """
        try:
            nodes = _NODES.decode(text)
            inputs = [bytes(node.inputs) for node in nodes]
            outputs = [bytes(node.outputs) for node in nodes]
            distinct = dict.fromkeys(inputs)
            distinct.update(dict.fromkeys(outputs))
            ios = _IOS.decode(b"[" + b",".join(distinct) + b"]")
        except msgspec.ValidationError:
            return None  # The other one tells the place.
        ids = [node.id for node in nodes]
        if ids and (min(ids) < 0 or max(ids) >= _ID_LIMIT):
            return None
        self.ios += len(ios)
        code_of = dict(zip(distinct, range(len(distinct)), strict=True)).__getitem__
        sides = {"inputs": inputs, "outputs": outputs}
        codes = {side: np.array(list(map(code_of, sides[side])), np.int32) for side in sides}
        return RawPiece(nodes, ios, codes)
