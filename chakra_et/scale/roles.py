"""What groups are for: by what their makers call them, and by what they carry."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from chakra_et.build.grid import Grid
from chakra_et.definitions import CollectiveType
from chakra_et.scale.families import Kin
from chakra_et.scale.sources import Source

_WORDS: Final = (
    ("edp", r"(mesh[-_])?(edp|expert[-_ ]?data.*)"),
    ("ep", r"(mesh[-_])?(ep|expert([-_ ]?(model))?([-_ ]?parallel)?([-_ ]?group)?)"),
    ("tp", r"(mesh[-_])?(tp|(tensor|model)([-_ ]model)?[-_ ]?parallel.*|tensor|model)"),
    ("dp", r"(mesh[-_])?(dp|data([-_ ]?parallel.*)?|ddp|fsdp|replicate|shard)"),
    ("pp", r"(mesh[-_])?(pp|pipe(line)?.*)"),
    ("cp", r"(mesh[-_])?(cp|context.*)"),
)
"""Roles, and what makers call groups of such: Megatron, DeepSpeed, PyTorch's device meshes."""
SHARED_PHASES: Final = ("gather", "gradients", "optimizer")
"""Phases in which replicas communicate."""
_INSIDE: Final = ("forward", "backward", "recompute")
_OFTEN: Final = 4
"""So many collectives of one size in a step are one for each layer."""


def role_called(text: str) -> str | None:
    """The role that groups or axes of a name have; None for another name."""
    found = (r for r, pattern in _WORDS if re.fullmatch(pattern, text.strip(), re.IGNORECASE))
    return next(found, None)


def role_of_family(kin: Kin, sources: Sequence[Source], *, only: bool) -> tuple[str, str] | None:
    """The role of a family, and how it is known; None where nothing tells.

    `only` says that no other family lies on the same axis.
    """
    role = role_called(kin.purpose)
    if role is not None:
        return role, f"groups called {kin.purpose!r}"
    return _carried(kin, sources, only=only)


def _carried(kin: Kin, sources: Sequence[Source], *, only: bool) -> tuple[str, str] | None:
    """The role that the collectives of a family show."""
    types: Counter[int] = Counter()
    volume: Counter[str] = Counter()
    for call, count in kin.calls:
        types[call.collective if call.collective is not None else -1] += count
        volume[call.phase] += count * (call.size_bytes or 0)
    if not types:
        return None
    told = ", ".join(f"{CollectiveType(t).name} x {n}" for t, n in sorted(types.items()))
    shared, inside = (sum(volume[phase] for phase in each) for each in (SHARED_PHASES, _INSIDE))
    if shared > inside:
        return "dp", f"gradients and weights: {told}"
    wrappers = sorted({name for source in sources for name in source.wrappers})
    if wrappers and only:
        return "dp", f"{wrappers[0]} ran: {told}"
    if set(types) == {CollectiveType.ALL_TO_ALL}:
        return "ep", f"nothing but {told}"
    if inside > volume[""]:
        return "tp", f"within layers: {told}"
    if types[CollectiveType.REDUCE_SCATTER] and types[CollectiveType.ALL_GATHER]:
        return None
    sizes: Counter[int | None] = Counter()
    for call, count in kin.calls:
        sizes[call.size_bytes] += count
    if _most_of_one_size(kin, sources, sizes) >= _OFTEN:
        return "tp", f"many of one size in a step: {told}"
    if set(types) == {CollectiveType.ALL_REDUCE} and len(sizes) > 1 == len(set(sizes.values())):
        return "dp", f"{len(sizes)} sizes, one as often as another, as of buckets: {told}"
    return None


def _most_of_one_size(kin: Kin, sources: Sequence[Source], sizes: Mapping[int | None, int]) -> int:
    """How many collectives of a rank and step are of the commonest size, if most are."""
    most = max(sizes.values())
    if 2 * most < sum(sizes.values()):
        return 0
    ranks = len(kin.groups) * kin.size
    return most // (ranks * max(source.steps for source in sources))


def role_of_messages(grid: Grid, axis: str, steps: set[int]) -> bool:
    """Whether messages go to the next place of an axis."""
    return grid.axes[axis] > 1 and grid.rank(**{axis: 1}) in steps
