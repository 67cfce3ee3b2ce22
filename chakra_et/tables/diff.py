"""What two runs differ in: structure, operators, time, groups, attributes, metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from chakra_et.model import Metadata, Trace, TraceSet
from chakra_et.model.attribute_values import same_value
from chakra_et.tables.alone import edges_alone, nodes_alone
from chakra_et.tables.attribute_changes import attribute_changes
from chakra_et.tables.matched import Matched, matched
from chakra_et.tables.operators import operator_table
from chakra_et.tables.ranks import rank_table
from chakra_et.tables.table import Table, texts


@dataclass(frozen=True)
class Difference:
    """What differs, by section: tables that are empty where both sides are the same."""

    sections: dict[str, Table]
    nodes: tuple[int, int]
    matched: int

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not any(map(len, self.sections.values()))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "same": self.same,
            "nodes": list(self.nodes),
            "matched_nodes": self.matched,
            **{name: table.as_dicts() for name, table in self.sections.items()},
        }


def diff(
    left: Mapping[int, Trace], right: Mapping[int, Trace], only: Iterable[str] = ()
) -> Difference:
    """Compare two runs, or two versions of one; `only` names sections (see `SECTIONS`).

    Nodes stand for each other that have one id and one name, if that holds for all ids that both
    sides have; else those of one name at one place of their thread or stream, and what is left of
    one name in the order of the file. A run of one rank
    is compared with another one of one rank, whatever their numbers.
    """
    if len(left) == len(right) == 1:
        right = dict(zip(left, right.values(), strict=True))
    both = [matched(rank, left[rank], right[rank]) for rank in left if rank in right]
    chosen = list(only) or list(SECTIONS)
    return Difference(
        {name: SECTIONS[name](left, right, both) for name in SECTIONS if name in chosen},
        (_count(left), _count(right)),
        sum(int(np.count_nonzero(found.row >= 0)) for found in both),
    )


def _count(traces: Mapping[int, Trace]) -> int:
    return sum(len(trace.nodes) for trace in traces.values())


def _structure(left: Mapping[int, Trace], right: Mapping[int, Trace], both: list[Matched]) -> Table:
    """Ranks, nodes and edges that one side has alone, with how many there are."""
    rows: list[tuple[int, str, str, int, int]] = []
    for rank in sorted({*left, *right}):
        if rank not in left or rank not in right:
            one, other = (len(s[rank].nodes) if rank in s else 0 for s in (left, right))
            rows.append((rank, "nodes", "(all of the rank)", one, other))
    for found in both:
        rows += [(found.rank, "nodes", *row) for row in nodes_alone(found)]
        rows += [(found.rank, "edges", *row) for row in edges_alone(found)]
    return _table("structure", ("rank", "what", "name", "only_left", "only_right"), rows)


def _operators(
    left: Mapping[int, Trace], right: Mapping[int, Trace], _both: list[Matched]
) -> Table:
    """Names with another number of calls, or another own time."""
    sides: list[dict[tuple[str, str], tuple[int, int]]] = [
        {(row["name"], row["on"]): (row["calls"], row["self_ns"]) for row in table.as_dicts()}
        for table in map(operator_table, (left, right))
    ]
    rows = []
    for name, place in dict.fromkeys((*sides[0], *sides[1])):
        one, other = (side.get((name, place), (0, 0)) for side in sides)
        if one != other:
            rows.append((name, place, one[0], other[0], one[1], other[1], other[1] - one[1]))
    rows.sort(key=lambda row: -abs(row[-1]))
    names = (
        "name", "on", "left_calls", "right_calls", "left_self_ns", "right_self_ns", "change_ns",
    )  # fmt: skip
    return _table("operators", names, rows)


_TIMES: Final = ("span_ns", "compute_ns", "overlap_ns", "exposed_comm_ns", "other_ns")


def _time(left: Mapping[int, Trace], right: Mapping[int, Trace], _both: list[Matched]) -> Table:
    """Spans of ranks, and what they went into, where they differ."""
    sides = [{row["rank"]: row for row in rank_table(side).as_dicts()} for side in (left, right)]
    rows = []
    for rank in (rank for rank in sides[0] if rank in sides[1]):
        for what in _TIMES:
            one, other = sides[0][rank][what], sides[1][rank][what]
            if one != other:
                share = (other - one) / one if one else float("nan")
                rows.append((rank, what.removesuffix("_ns"), one, other, other - one, share))
    names = ("rank", "what", "left_ns", "right_ns", "change_ns", "change_share")
    return _table("time", names, rows)


def _groups(left: Mapping[int, Trace], right: Mapping[int, Trace], _both: list[Matched]) -> Table:
    """Process groups that one side has alone, or with other members."""
    sides = [
        {group.name: list(group.ranks) for group in TraceSet(side).groups} for side in (left, right)
    ]
    rows = [
        (name, sides[0].get(name), sides[1].get(name))
        for name in dict.fromkeys((*sides[0], *sides[1]))
        if sides[0].get(name) != sides[1].get(name)
    ]
    return _table("groups", ("group", "left_ranks", "right_ranks"), rows)


def _attributes(
    _left: Mapping[int, Trace], _right: Mapping[int, Trace], both: list[Matched]
) -> Table:
    """Fields and attributes of nodes that stand for each other, where they differ."""
    rows = [
        (found.rank, *row)
        for found in both
        for row in attribute_changes(found.left, found.right, found.row)
    ]
    names = ("rank", "name", "only_left", "only_right", "changed", "example")
    return _table("attributes", names, rows)


def _metadata(
    _left: Mapping[int, Trace], _right: Mapping[int, Trace], both: list[Matched]
) -> Table:
    """What the files say of the whole, where they differ; groups have a section of their own."""
    rows = []
    for found in both:
        sides = [
            {
                "version": of.metadata.version,
                **{a.key.name: a.value for a in of.metadata.attributes},
            }
            for of in (found.left, found.right)
        ]
        for name in dict.fromkeys((*sides[0], *sides[1])):
            one, other = sides[0].get(name), sides[1].get(name)
            if not same_value(one, other) and name != "process_groups":
                rows.append((found.rank, name, _brief(one), _brief(other)))
    return _table("metadata", ("rank", "name", "left", "right"), rows)


def _said(metadata: Metadata) -> dict[str, Any]:
    said = {attribute.key.name: attribute.value for attribute in metadata.attributes}
    return {"version": metadata.version, **said}


def _brief(value: object) -> str | None:
    text = None if value is None else str(value)
    return text if text is None or len(text) <= 200 else f"{text[:200]}…"


SECTIONS: Final[
    dict[str, Callable[[Mapping[int, Trace], Mapping[int, Trace], list[Matched]], Table]]
] = {
    "structure": _structure,
    "operators": _operators,
    "time": _time,
    "groups": _groups,
    "attributes": _attributes,
    "metadata": _metadata,
}
"""What is compared, by the name of the section."""
_TEXTS: Final = frozenset(
    {"what", "name", "on", "group", "left_ranks", "right_ranks", "example", "left", "right"}
)


def _table(title: str, names: tuple[str, ...], rows: list[Any]) -> Table:
    columns = {}
    for place, name in enumerate(names):
        items = [row[place] for row in rows]
        kind = np.float64 if name.endswith("_share") else np.int64
        columns[name] = texts(items) if name in _TEXTS else np.array(items, kind)
    return Table(title, columns)
