"""Which operations of a trace run: the outermost that can, and none that lies within another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chakra_et.benchmark.calls import COMMUNICATES, LABELS
from chakra_et.benchmark.composite import chooses_by_gradient, is_composite
from chakra_et.benchmark.hidden import StorageUse
from chakra_et.benchmark.host_tree import HostTree
from chakra_et.benchmark.schema import parse_schema
from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.recording.libraries import RECORD
from chakra_et.recording.operators import PYTHON

COMMUNICATION: tuple[NodeType, ...] = (
    NodeType.COMM_COLL,
    NodeType.COMM_SEND,
    NodeType.COMM_RECV,
)


@dataclass(frozen=True)
class Selection:
    """The rows to run, in their order, and those that were opened: their callees run instead."""

    rows: Rows
    opened: Rows
    """Composite operators, whose callees are all that they do."""
    replaced: Rows
    """Operators that cannot run, of whose work only the operators that they call are left."""
    cover: Rows
    """The chosen row that each row lies in; -1 where there is none."""


@dataclass(frozen=True)
class Candidates:
    """What could run: one entry of each column for each node."""

    operators: Mask
    """Nodes of the host with a schema, generated kernels, and calls that communicate."""
    communicates: Mask
    kernels: Mask
    composite: Mask
    """Operators that do nothing but call others."""
    choosing: Mask
    """Those of them that would call others in a run without gradients, and operators in Python."""
    in_python: Mask
    """Operators on wrappers of tensors (a DTensor, say), which have shapes and no memory: what
    their Python calls runs."""

    @classmethod
    def of(cls, tree: HostTree, schemas: list[str]) -> Candidates:
        """Of a trace, with the text of the schema of each node."""
        nodes = tree.trace.nodes
        spaces = [text.partition("::")[0] for text in schemas]
        is_record = np.array([name == RECORD for name in nodes.names] or [False])
        recorded = is_record[nodes.name_code]
        kernels = nodes.attributes.dense("kernel_backend", "", object) == "triton"
        has_schema = np.array([bool(space) and space not in LABELS for space in spaces], np.bool_)
        on_host = nodes.attributes.dense("is_cpu_op", False, np.bool_)
        on_host &= ~np.isin(nodes.type, COMMUNICATION)
        communicates = recorded | np.array([space in COMMUNICATES for space in spaces], np.bool_)
        parsed = {text: parse_schema(text) for text in set(schemas)}
        composed = {text for text, schema in parsed.items() if is_composite(schema)}
        choose = {text for text, schema in parsed.items() if chooses_by_gradient(schema)}
        composite = np.array([text in composed for text in schemas], np.bool_)
        choosing = np.array([text in choose for text in schemas], np.bool_)
        is_python = np.array([name == PYTHON for name in nodes.names] or [False])
        in_python = tree.holds(is_python[nodes.name_code])
        choosing |= in_python
        operators = on_host & (has_schema | recorded | kernels)
        return cls(operators, communicates, kernels, composite, choosing, in_python)


def select(
    tree: HostTree, candidates: Candidates, window: Mask, refused: Callable[[int], bool]
) -> Selection:
    """Choose the outermost operators; those that are refused give way to operators that they call.

    So do composite operators whose callees made memory that others read later, as `aten::dropout`
    makes a mask for its gradient: what they return does not hold it; and those that would call
    others than recorded, as there are no gradients in a run.
    """
    chosen = candidates.operators & window
    openable = tree.holds(chosen) & ~candidates.communicates
    use = StorageUse.of(tree.trace)
    opened, replaced = np.zeros((2, len(chosen)), np.bool_)
    while True:
        cover = tree.cover(chosen)
        outermost = cover == np.arange(len(cover))
        asked = outermost & openable
        found = np.array([row for row in np.flatnonzero(asked).tolist() if refused(row)], np.int64)
        replaced[found] = True
        if not len(found):
            found = np.flatnonzero(asked & candidates.choosing)
            if not len(found):
                found = use.hidden(cover, outermost)
                found = found[openable[found] & candidates.composite[found]]
            opened[found] = True
        if not len(found):
            rows, gave_way = np.flatnonzero(outermost), np.flatnonzero(opened)
            return Selection(rows, gave_way, np.flatnonzero(replaced), cover)
        chosen[found] = False
