"""A trace as columns by name, and back; the bytes of its file follow from them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy.typing as npt

from chakra_et.converters.et.decoder import decode_et
from chakra_et.converters.et.encoder import encode_et
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeTable, Edges, Nodes, Trace

Column: TypeAlias = "npt.NDArray[Any] | list[Any] | bytes"
"""Numbers, or what msgpack can hold."""
Columns: TypeAlias = dict[str, Column]

_NODE_ARRAYS: Final = (
    "id", "type", "name_code", "start_ns", "duration_ns", "input_code", "output_code",
    "exact_start", "exact_duration",
)  # fmt: skip
_EDGE_ARRAYS: Final = ("offsets", "source", "kind", "inferred")


def columns_of(data: bytes) -> Columns | None:
    """The columns of an ET's bytes; None for what is no ET of the current schema.

    The bytes need not follow from them: a writer may choose other encodings of the same trace.
    """
    try:
        return _taken_apart(decode_et(data))
    except ValueError:
        return None


def bytes_of(columns: Columns) -> bytes:
    """The ET that columns were made of."""
    return b"".join(encode_et(_put_together(columns)))


def _taken_apart(trace: Trace) -> Columns:
    nodes, edges, attributes = trace.nodes, trace.edges, trace.nodes.attributes
    names = [name.encode("utf-8", "surrogateescape") for name in nodes.names]
    columns: Columns = {
        "head": next(iter(encode_et(trace))),
        "names": names,
        "texts": [list(text) for text in nodes.texts],
        "extra": [[row, text] for row, text in nodes.extra.items()],
        "layouts": [list(layout) for layout in attributes.layouts],
        "layout": attributes.layout,
        "keys": [
            [k.name, None if k.kind is None else int(k.kind), k.occurrence, k.doc, k.extra]
            for k in (column.key for column in attributes.columns)
        ],
    }
    columns |= {f"nodes.{name}": getattr(nodes, name) for name in _NODE_ARRAYS}
    columns |= {f"edges.{name}": getattr(edges, name) for name in _EDGE_ARRAYS}
    for number, column in enumerate(attributes.columns):
        columns[f"rows.{number}"] = column.rows
        columns[f"values.{number}"] = column.values
    return columns


def _put_together(columns: Columns) -> Trace:
    found: Any = columns
    count = len(found["nodes.id"])
    attributes = [
        AttributeColumn(
            AttributeKey(name, None if kind is None else Kind(kind), occurrence, doc, extra),
            found[f"rows.{number}"],
            _values(found[f"values.{number}"]),
        )
        for number, (name, kind, occurrence, doc, extra) in enumerate(found["keys"])
    ]
    nodes = Nodes(
        names=[name.decode("utf-8", "surrogateescape") for name in found["names"]],
        texts=[tuple(text) for text in found["texts"]],
        attributes=AttributeTable(
            count, attributes, [tuple(layout) for layout in found["layouts"]], found["layout"]
        ),
        extra=dict(found["extra"]),
        **{name: found[f"nodes.{name}"] for name in _NODE_ARRAYS},
    )
    edges = Edges(**{name: found[f"edges.{name}"] for name in _EDGE_ARRAYS})
    return Trace(nodes, edges, decode_et(found["head"]).metadata)


def _values(values: Any) -> Any:
    """Values of an attribute; those that are lists of a node are tuples in a trace."""
    if isinstance(values, list) and values and isinstance(values[0], list):
        return [tuple(value) for value in values]
    return values
