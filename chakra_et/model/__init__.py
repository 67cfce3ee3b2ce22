"""The trace in memory: nodes in columns, typed edges, process groups and metadata."""

from chakra_et.definitions import EdgeKind
from chakra_et.model.attribute_column import AttributeColumn
from chakra_et.model.attribute_values import AttributeKey, AttributeValue
from chakra_et.model.attributes import AttributeTable
from chakra_et.model.edges import Edges
from chakra_et.model.groups import ProcessGroup, number_in_name
from chakra_et.model.metadata import Metadata, MetadataAttribute
from chakra_et.model.nodes import UNKNOWN_NS, Node, NodeIO, Nodes
from chakra_et.model.packed_values import CodedTexts, JoinedTexts, PackedValues, TextsOfRows
from chakra_et.model.time_parts import (
    GAP,
    TimeParts,
    between_operations,
    set_time_parts,
    time_parts,
)
from chakra_et.model.trace import Trace
from chakra_et.model.trace_set import TraceSet

__all__ = [
    "GAP",
    "UNKNOWN_NS",
    "AttributeColumn",
    "AttributeKey",
    "AttributeTable",
    "AttributeValue",
    "CodedTexts",
    "EdgeKind",
    "Edges",
    "JoinedTexts",
    "Metadata",
    "MetadataAttribute",
    "Node",
    "NodeIO",
    "Nodes",
    "PackedValues",
    "ProcessGroup",
    "TextsOfRows",
    "TimeParts",
    "Trace",
    "TraceSet",
    "between_operations",
    "number_in_name",
    "set_time_parts",
    "time_parts",
]
