"""Rules about types and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import ATTRIBUTES, Attribute, Kind, NodeType
from chakra_et.model import AttributeColumn, edge_evidence
from chakra_et.model.attribute_values import INTEGER_KINDS
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import TraceView

Say = Callable[[AttributeColumn, Attribute], str]
_MOST_BYTES: Final = 1 << 50
"""A petabyte: what no communication and no tensor has."""
_NEVER_NEGATIVE: Final = frozenset({"bytes", "rank", "FLOP", "ns", "us"})
_SIGNED: Final = frozenset({"lag_ns"})
"""Attributes that may be negative, though their unit is one of those."""


@trace_rule(
    "ET201",
    "An attribute is of a kind that no reader accepts.",
    why="Readers stop ('bad_cast'), or treat it as absent.",
    cure="Write the kind that the registry of attributes gives; `chakra fix` does where it can.",
    kin="ET504 ET506 ET205 ET206 ET209 ET210 ET211 ET213 ET217 ET401 ET712 ET717 ET801",
)
def wrong_kind(view: TraceView) -> Hits:
    """Well-known attributes of a kind that the registry does not accept."""
    found = [(c, a) for c, a in _known(view) if c.key.kind not in a.accepts]
    return _in_columns(
        view,
        found,
        lambda c, a: f"{c.key.name} is of kind {_kind(c)}; expected {a.kind.name.lower()}",
    )


@trace_rule(
    "ET202",
    "An attribute is not of the kind that writers must use.",
    why="The older C++ feeder reads one kind and takes any other for 0 or false, silently.",
    cure="`chakra fix` writes the kind that every reader takes.",
)
def other_kind(view: TraceView) -> Hits:
    """Well-known attributes of an accepted kind other than the one to write."""
    found = [
        (c, a) for c, a in _known(view) if c.key.kind in a.accepts and c.key.kind is not a.kind
    ]
    return _in_columns(
        view,
        found,
        lambda c, a: f"{c.key.name} is of kind {_kind(c)}, not {a.kind.name.lower()}",
    )


@trace_rule(
    "ET203",
    "A node has an attribute twice.",
    why="One reader takes the first, another the last.",
    cure="Keep one of them; `chakra fix` keeps the first, as our reader does.",
    kin="ET201 ET202",
)
def repeated_attribute(view: TraceView) -> Hits:
    """Nodes whose attributes have a name more than once."""
    table = view.nodes.attributes
    repeated = np.zeros(len(table.layouts), np.bool_)
    for code, layout in enumerate(table.layouts):
        names = [table.columns[number].key.name for number in layout]
        repeated[code] = len(set(names)) < len(names)
    rows = np.flatnonzero(repeated[table.layout])

    def twice(i: int) -> str:
        names = [key.name for key, _ in table.at(int(rows[i]))]
        return ", ".join(sorted({name for name in names if names.count(name) > 1}))

    return view.hits(rows, twice)


@trace_rule(
    "ET204",
    "A node has no type, or an unknown one.",
    why="ASTRA-sim skips a node without a type, and stops at one that it does not know.",
    cure="Give it the type that it has; `chakra fix` drops nodes without one.",
)
def no_type(view: TraceView) -> Hits:
    """INVALID, and numbers beyond those of the schema."""
    types = view.nodes.type
    rows = np.flatnonzero((types == NodeType.INVALID) | ~np.isin(types, list(NodeType)))
    return view.hits(rows, lambda i: f"type {types[rows[i]]}")


@trace_rule(
    "ET208",
    "An attribute has a value that its unit does not allow.",
    why="Readers take it for a huge number, or compute nonsense from it.",
    cure="Look at how the producer makes the value: an overflow of 32 bits is common.",
    kin="ET209 ET211 ET214 ET504 ET505 ET506 ET508 ET712 ET713",
)
def out_of_range(view: TraceView) -> Hits:
    """Negative sizes, ranks and times, and sizes of more than a petabyte."""
    found: list[tuple[Rows, str]] = []
    for column, attribute in _known(view):
        if column.key.kind not in INTEGER_KINDS:
            continue
        wrong = np.zeros(len(column.rows), np.bool_)
        unsigned = attribute.unit in _NEVER_NEGATIVE and column.key.name not in _SIGNED
        if unsigned and column.values.dtype != np.uint64:
            wrong |= column.values < 0
        if attribute.unit == "bytes":
            wrong |= column.values > _MOST_BYTES
        if wrong.any():
            found.append((column.rows[wrong], column.key.name))
    if not found:
        return NOTHING
    rows = np.concatenate([rows for rows, _ in found])
    names = np.repeat(np.array([name for _, name in found]), [len(rows) for rows, _ in found])
    return view.hits(
        rows, lambda i: f"{names[i]} is {view.nodes.attributes.get(int(rows[i]), str(names[i]))}"
    )


@trace_rule(
    "ET213",
    "Nodes do not say whether they run on the host.",
    why="Some readers take them for device work, others for host work.",
    cure="Set is_cpu_op on every node.",
)
def no_side(view: TraceView) -> Hits:
    """COMP nodes without `is_cpu_op`, told once, where other nodes of the trace have it."""
    rows = view.of_type(NodeType.COMP)
    without = rows[~view.present("is_cpu_op")[rows]]
    if len(without) == 0 or len(without) == len(rows):
        return NOTHING
    return Hits.of(
        [view.at(int(without[0]), f"{len(without)} of {len(rows)} COMP nodes have no is_cpu_op")]
    )


@trace_rule(
    "ET216",
    "edge_kinds, edge_evidence or an exact time contradicts the fields of its node.",
    why="A tool changed edges or times and left the attributes that tell of them.",
    cure="Drop the attribute, or write what it should say; `chakra fix` drops it.",
)
def stale_attribute(view: TraceView) -> Hits:
    """What the reader could not use and so kept, and evidence of another number of edges."""
    names = ("edge_kinds", "start_time_ns", "duration_ns")
    found = [(c.key.name, c.rows) for name in names for c in view.nodes.attributes.named(name)]
    found.append((edge_evidence.NAME, edge_evidence.misfits(view.trace)))
    rows = np.concatenate([rows for _, rows in found])
    said = np.repeat([name for name, _ in found], [len(rows) for _, rows in found])
    return view.hits(rows, lambda i: f"{said[i]} does not fit the node")


@trace_rule(
    "ET217",
    "A memory node has no size.",
    why="ASTRA-sim cannot compute its time.",
    cure="Set tensor_size.",
)
def no_tensor_size(view: TraceView) -> Hits:
    """MEM_LOAD and MEM_STORE nodes without `tensor_size`."""
    return view.lacking(view.of_type(NodeType.MEM_LOAD, NodeType.MEM_STORE), "tensor_size")


@trace_rule(
    "ET218",
    "The names of nodes contradict their types.",
    why="Forks insert a type of their own and shift the others: a computation reads as a message, "
    "and a collective as storage.",
    cure="Read the file with the fork's own tools, or correct the types.",
    kin="ET204 ET209 ET210 ET211 ET702",
)
def fork_dialect(view: TraceView) -> Hits:
    """Nodes called COMP_NODE_… and the like, most of which are of another type; told once."""
    codes, counts = np.unique(view.nodes.name_code, return_counts=True)
    named = {c: t for c in codes.tolist() if (t := _type_in(view.nodes.names[c])) is not None}
    if not named:
        return NOTHING
    wanted = np.full(len(view.nodes.names), -1, np.int64)
    wanted[list(named)] = list(named.values())
    told = wanted[view.nodes.name_code]
    wrong = np.flatnonzero((told >= 0) & (told != view.nodes.type))
    total = int(counts[np.isin(codes, list(named))].sum())
    if len(wrong) * 2 <= total:
        return NOTHING
    row = int(wrong[0])
    text = f"type {view.nodes.type[row]}; {len(wrong)} of {total} nodes so named"
    return Hits.of([view.at(row, text)])


def _type_in(name: str) -> int | None:
    """The type that a node's name begins with."""
    word, found, _ = name.partition("_NODE")
    known = NodeType.__members__.get(word) if found else None
    return None if known is None else int(known)


def _known(view: TraceView) -> Iterator[tuple[AttributeColumn, Attribute]]:
    """The columns of well-known attributes."""
    for column in view.nodes.attributes.columns:
        attribute = ATTRIBUTES.get(column.key.name)
        if attribute is not None and len(column.rows):
            yield column, attribute


def _kind(column: AttributeColumn) -> str:
    kind = column.key.kind
    return "no value" if kind is None else Kind(kind).name.lower()


def _in_columns(view: TraceView, found: list[tuple[AttributeColumn, Attribute]], say: Say) -> Hits:
    """One hit for each column: at its first node, with the number of nodes."""

    def finding(i: int) -> Finding:
        column, attribute = found[i]
        where = f" (on {len(column.rows)} nodes)" if len(column.rows) > 1 else ""
        return view.at(int(column.rows[0]), say(column, attribute) + where)

    return Hits(len(found), finding)
