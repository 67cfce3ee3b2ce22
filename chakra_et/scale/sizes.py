"""What the size of a collective becomes when the group that runs it grows.

Data-parallel replicas share one set of weights, and more of them work on more data: sums of
gradients stay as large, and what is divided among the replicas is divided further. Tensor-parallel
ranks keep the part of each layer that they have, so that the model becomes wider: sums of
activations stay as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.scale.families import Kin
from chakra_et.scale.roles import SHARED_PHASES, role_called

_C: Final = CollectiveType
_KEPT: Final = frozenset({_C.ALL_REDUCE, _C.REDUCE, _C.BROADCAST, _C.BARRIER})
_SCATTERED: Final = frozenset({_C.REDUCE_SCATTER, _C.REDUCE_SCATTER_BLOCK})
_WHY_NOT: Final = {
    "pp": "stages differ in their layers and in the order of their passes, which depend on how "
    "many there are",
    "cp": "attention over more parts has more steps, and each works on fewer tokens",
    "ep": "experts would be divided among more ranks, which changes the shapes of their operators",
}
GROWING: Final = ("dp", "edp", "tp")
"""Roles of axes that can grow."""


class Gathered(str, Enum):
    """What stays as it is in all-gathers of data-parallel ranks: the whole, or each rank's part."""

    WHOLE = "whole"
    PART = "part"


class Rule(Enum):
    """What a rank hands to a collective of more ranks."""

    KEPT = "as before"
    DIVIDED = "a smaller part of the same whole"
    PADDED = "the same whole, padded to the ranks"


def refuse_axis(axis: str) -> None:
    """Raise ChakraError for an axis that cannot grow by copying ranks."""
    role = role_called(axis)
    if role not in GROWING:
        why = _WHY_NOT.get(role or "", "what it is for is not known")
        raise ChakraError(
            f"axis {axis} cannot grow: {why}",
            remedy="Generate the set with that degree (`chakra generate`), or record it.",
        )


def rules_of(kin: Kin, axis: str, gathered: Gathered | None) -> dict[int, Rule]:
    """The rule for each type of collective that a family runs, when `axis` grows, which it spans.

    Raises ChakraError for a collective of which it is not known what more ranks would do.
    """
    return {
        type: _rule(kin, type, axis, gathered)
        for type in sorted({c.collective for c, _ in kin.calls if c.collective is not None})
    }


def _rule(kin: Kin, type: int, axis: str, gathered: Gathered | None) -> Rule:
    if type in _KEPT:
        return Rule.KEPT
    wider = role_called(axis) == "tp"
    if not wider:
        if type == _C.ALL_TO_ALL:
            return Rule.KEPT
        if type in _SCATTERED:
            return Rule.PADDED
        if type == _C.ALL_GATHER:
            return _gather_rule(kin, gathered)
    name = CollectiveType(type).name
    if wider:
        raise ChakraError(
            f"axis {axis} cannot grow: {kin.name!r} runs {name}, so operators between work on "
            "parts that would change (sequence parallelism, gathered outputs)",
            remedy="Generate the set with that degree (`chakra generate`).",
        )
    raise ChakraError(
        f"axis {axis} cannot grow: {kin.name!r} runs {name}, and nothing tells whether the whole "
        "or each rank's part would stay",
        remedy="Generate the set with that degree (`chakra generate`), or record it.",
    )


def _gather_rule(kin: Kin, gathered: Gathered | None) -> Rule:
    """Weights and optimizer state are one whole; what else is gathered may be each rank's own."""
    if gathered is not None:
        return Rule.DIVIDED if gathered is Gathered.WHOLE else Rule.KEPT
    types = {call.collective for call, _ in kin.calls}
    phases = {call.phase for call, _ in kin.calls if call.collective == _C.ALL_GATHER}
    if phases <= set(SHARED_PHASES) or types & _SCATTERED:
        return Rule.DIVIDED
    raise ChakraError(
        f"nothing tells what the all-gathers of {kin.name!r} gather: weights, of which more ranks "
        "have smaller parts, or what each rank made, which makes more together",
        remedy="Say --gathered whole, or --gathered part.",
    )


def part(elements: int, old: int, new: int) -> int:
    """The part of each of `new` ranks of what `old` ranks had so many elements of, rounded up."""
    return -(-elements * old // new)


def padded(pieces: Sequence[int], ranks: int) -> int:
    """Elements of a whole of which each piece is divided among ranks, and filled up for that."""
    return sum(-(-piece // ranks) * ranks for piece in pieces)
