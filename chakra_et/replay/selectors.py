"""Selectors: which nodes a what-if changes, said in a few characters.

`name~gemm` takes the nodes whose name the regular expression `gemm` finds, `type=COMM_COLL` those
whose field equals. Fields are `name`, `type` and every attribute. What is chosen is time, wherever
it lies: that of a node may lie in the intervals of others. `gap=true` takes the time between
operations of host threads, in annotations and outside of them.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.errors import ChakraError
from chakra_et.model import TimeParts, Trace, between_operations
from chakra_et.model.nodes import type_label

GAP_FIELD: Final = "gap"

_SELECTOR = re.compile(r"(?P<field>[\w.]+)(?P<how>!?[~=])(?P<wanted>.*)", re.DOTALL)


def select_parts(trace: Trace, parts: TimeParts, selector: str) -> npt.NDArray[np.bool_]:
    """The parts of time that a selector names: those of the nodes it names, or between operations.

    Raises ChakraError for a selector that is not understood.
    """
    field, how, wanted = _parsed(selector)
    if field == GAP_FIELD:
        between = between_operations(trace.nodes, parts)
        return np.asarray(between ^ (wanted.lower() != "true") ^ how.startswith("!"))
    gaps = parts.gap
    chosen = np.append(select(trace, selector), how.startswith("!"))
    return chosen[np.where(gaps, -1, parts.owner)]


def _parsed(selector: str) -> tuple[str, str, str]:
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        raise ChakraError(
            f"invalid selector {selector!r}", remedy="Write FIELD~REGEX or FIELD=VALUE."
        )
    return match["field"], match["how"], match["wanted"]


def select(trace: Trace, selector: str) -> npt.NDArray[np.bool_]:
    """The nodes that a selector names. Raises ChakraError for one that is not understood."""
    field, how, wanted = _parsed(selector)
    values, code = _values(trace, field)
    if field == "type" and how.endswith("="):
        # The schema's own names are as good as the short ones.
        wanted = wanted.removesuffix("_NODE")
    if how.endswith("~"):
        try:
            pattern = re.compile(wanted)
        except re.error as error:
            raise ChakraError(
                f"invalid regular expression {wanted!r}: {error}", remedy="Escape it with \\."
            ) from error
        hits = [value is not None and pattern.search(value) is not None for value in values]
    else:
        hits = [value == wanted for value in values]
    chosen: npt.NDArray[np.bool_] = np.array([*hits, False], np.bool_)[code]
    return ~chosen if how.startswith("!") else chosen


def _values(trace: Trace, field: str) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The distinct values of a field as text, and which of them each node has (-1 for none)."""
    nodes = trace.nodes
    if field == "name":
        return list(nodes.names), nodes.name_code.astype(np.int64)
    if field == "type":
        kinds, code = np.unique(nodes.type, return_inverse=True)
        return [type_label(int(kind)) for kind in kinds], code.ravel()
    columns = nodes.attributes.named(field)
    if not columns:
        raise ChakraError(
            f"no node has a field {field!r}", remedy="Run chakra info to see the names."
        )
    texts: dict[str | None, int] = {}
    code = np.full(len(nodes), -1, np.int64)
    for column in columns:
        told = [str(value) for value in column.values]
        code[column.rows] = [texts.setdefault(text, len(texts)) for text in told]
    return list(texts), code
