"""What can go wrong in a feeder. The codes are those of the C++ library and of the service."""

from __future__ import annotations

from pathlib import Path

from chakra_et.errors import ChakraError
from chakra_et.feeder.codes import Code as Code


class FeederError(ChakraError):
    """A feeder cannot go on, or refuses a call.

    `code` says why; `node`, `other` (the parent, say) and `offset` (of the record in the
    decompressed input) say where, as far as they apply.
    """

    def __init__(
        self,
        code: Code,
        problem: str,
        *,
        node: int | None = None,
        other: int | None = None,
        offset: int | None = None,
        path: str | Path | None = None,
        remedy: str | None = None,
    ) -> None:
        self.code = code
        self.node = node
        self.other = other
        self.offset = offset
        place = None if offset is None else f"byte {offset}"
        super().__init__(problem, path=path, place=place, remedy=remedy)


def malformed(offset: int, why: str) -> FeederError:
    """The bytes of a record are no message."""
    return FeederError(Code.MALFORMED, f"this record is not a message: {why}", offset=offset)


def malformed_attribute(node: int, why: str) -> FeederError:
    """The bytes of an attribute are no message."""
    problem = f"node {node} has an attribute that is not a message: {why}"
    return FeederError(Code.MALFORMED, problem, node=node)


def truncated(offset: int) -> FeederError:
    """The input ends within a record."""
    return FeederError(
        Code.TRUNCATED,
        "the input ends inside this record",
        offset=offset,
        remedy="The file was cut, or is still being written; copy it again.",
    )


def too_large(offset: int, size: int) -> FeederError:
    """A record says that it is longer than allowed."""
    problem = f"this record claims {size} bytes, which exceeds the limit"
    return FeederError(Code.TOO_LARGE, problem, other=size, offset=offset)


def old_schema() -> FeederError:
    """The file is of a schema that means other things by the same bytes."""
    return FeederError(
        Code.OLD_SCHEMA,
        "it begins with a node: the schema is older than 0.0.4, or the metadata is lost",
        remedy="Make the trace again with a tool that writes schema 0.0.4 or 1.0.0.",
    )


def duplicate_id(node: int) -> FeederError:
    """Two nodes have the same id."""
    return FeederError(Code.DUPLICATE_ID, f"two nodes have the id {node}", node=node)


def missing_parent(node: int, parent: int) -> FeederError:
    """A node waits for one that the trace does not hold."""
    return FeederError(
        Code.MISSING_PARENT,
        f"node {node} waits for node {parent}, which is not in the trace",
        node=node,
        other=parent,
        remedy="Repair the trace, or open it with missing_parent='drop' (--missing-parent drop).",
    )


def self_edge(node: int) -> FeederError:
    """A node waits for itself."""
    return FeederError(
        Code.SELF_EDGE,
        f"node {node} waits for itself",
        node=node,
        remedy="Repair the trace, or open it with self_edge='drop' (--self-edge drop).",
    )


def unknown_node(node: int) -> FeederError:
    """No node has this id, or it has not been read yet."""
    return FeederError(Code.UNKNOWN_NODE, f"no node {node}", node=node)


def not_ready(node: int, state: str) -> FeederError:
    """take() of a node that cannot be taken."""
    return FeederError(Code.NOT_READY, f"node {node} is not ready: it is {state}", node=node)


def not_taken(node: int, state: str) -> FeederError:
    """done() or push_back() of a node that is not taken."""
    return FeederError(Code.NOT_TAKEN, f"node {node} is not taken: it is {state}", node=node)


def window_full(held: int) -> FeederError:
    """A strict window would have to hold more nodes."""
    problem = f"each of the {held} nodes in the window waits for one outside it"
    return FeederError(
        Code.WINDOW_FULL,
        problem,
        other=held,
        remedy="Use a larger window, or one that is not strict.",
    )
