"""A set of more ranks: its groups, what each rank's file tells, and which rank it is a copy of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.build import Workload
from chakra_et.build.families import Family, number_families
from chakra_et.build.grid import Grid
from chakra_et.definitions import Kind
from chakra_et.io.json_text import from_json
from chakra_et.model import AttributeKey, Metadata, MetadataAttribute, ProcessGroup
from chakra_et.model.groups import encode_groups
from chakra_et.scale.families import Kin, grow
from chakra_et.scale.sources import Source

WORKLOAD: Final = "workload"


class GrownWorkload(Workload):
    """The ranks of a set whose axes have grown; see `Workload` for what a set is.

    `source_of` has for each rank the one that it is a copy of, `kin` the family of each name.
    """

    def __init__(
        self, sources: Sequence[Source], kin: Sequence[Kin], old: Grid, sizes: Mapping[str, int]
    ) -> None:
        super().__init__({**old.axes, **sizes})
        self.old = old
        self.kin = {family.name: family for family in kin}
        self._metadata = [source.metadata for source in sources]
        self.source_of = self._sources(old)
        self.families = {family.name: self._family(family, sizes) for family in kin}
        number_families([f for f in self.families.values() if self.kin[f.name].named])
        self._sealed = True
        text, self.dropped = _workload(self._metadata, old, sizes)
        if text is not None:
            self.facts = {WORKLOAD: text}

    def _sources(self, old: Grid) -> npt.NDArray[np.int64]:
        ranks = np.arange(self.grid.world_size)
        places = {axis: self.grid.coordinate(axis, ranks) % size for axis, size in old.axes.items()}
        return np.asarray(old.rank(**places) + ranks * 0)

    def _family(self, kin: Kin, sizes: Mapping[str, int]) -> Family:
        members, grid = kin.members, self.old
        for axis, size in sizes.items():
            longer = Grid({**grid.axes, axis: size})
            members = grow(members, kin.name, grid, longer, axis)
            grid = longer
        return Family(kin.name, np.stack(members), grid.world_size)

    def metadata(self, rank: int) -> Metadata:
        """What the rank that this one is a copy of says, but for what tells of ranks and groups."""
        before = self._metadata[int(self.source_of[rank])]
        new: dict[str, tuple[Kind, Any]] = {
            "rank": (Kind.INT64, rank),
            "world_size": (Kind.INT64, self.grid.world_size),
            "process_groups": (Kind.STRING, encode_groups(self.groups_of(rank))),
            "grid": (Kind.STRING, _json(self.grid.axes)),
            "coordinates": (Kind.STRING, _json(self.grid.coordinates(rank))),
        }
        if WORKLOAD in self.facts:
            new[WORKLOAD] = (Kind.STRING, self.facts[WORKLOAD])
        kept = [copy(a) for a in before.attributes if not (self.dropped and a.key.name == WORKLOAD)]
        for attribute in kept:
            if attribute.key.name in new:
                kind, value = new.pop(attribute.key.name)
                attribute.key, attribute.value = AttributeKey(attribute.key.name, kind), value
        kept += [
            MetadataAttribute(AttributeKey(name, kind), value)
            for name, (kind, value) in new.items()
        ]
        return Metadata(before.version, kept, before.extra)

    def groups_of(self, rank: int) -> list[ProcessGroup]:
        """The groups of a rank that nodes or tables name, with what was known of their kind."""
        found = []
        for family in self.families.values():
            kin = self.kin[family.name]
            if kin.named and family.group_of[rank] >= 0:
                group = family.group(int(family.group_of[rank]))
                told = kin.told
                found.append(
                    msgspec.structs.replace(
                        group,
                        description=told.description if told else "",
                        source=told.source if told else "ranks that use the name",
                        inferred=told.inferred if told else True,
                    )
                )
        return found

    def comm_groups(self) -> dict[str, list[int]]:
        """The content of comm_groups.json: the ranks of every named group by its number."""
        return {
            str(family.first_number + index): members
            for family in self.families.values()
            if self.kin[family.name].named and family.size > 1
            for index, members in enumerate(family.members.tolist())
        }


def _workload(
    every: Sequence[Metadata], old: Grid, sizes: Mapping[str, int]
) -> tuple[str | None, bool]:
    """What a generated set was made from, with its new degrees; whether it had to be dropped.

    More data-parallel ranks are told by a degree and by the batch. A wider model is another one.
    """
    texts = {metadata.get(WORKLOAD) for metadata in every}
    if texts == {None} or not sizes:
        return None, False
    text = texts.pop()
    try:
        told = from_json(text if isinstance(text, str) else "", type=dict[str, Any])
    except ValueError:
        return None, True
    dp = told.get("dp")
    if texts or told.get("kind") != "llm" or "tp" in sizes or not isinstance(dp, int):
        return None, True
    (axis,) = sizes
    told["dp"] = dp // old.axes[axis] * sizes[axis]
    told["global_batch"] = told.get("global_batch", 0) // dp * told["dp"]
    return _json(told), False


def _json(value: Mapping[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
