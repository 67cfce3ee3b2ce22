"""What operators do with their arguments: read them, write them, or only look at them anew.

Evidence, the best first: the operator's schema, in which `(a!)` marks what is written; its name,
which ends in an underscore where it works in place; and what is known of some names.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from chakra_et.patterns import lazy_pattern
from chakra_et.recording import Operators
from chakra_et.recording.libraries import REQUEST
from chakra_et.recording.operators import ARGUMENTS

_ALLOCATES: Final = lazy_pattern(r"^aten::(new_)?_?empty(_\w+)?$|^aten::_?resize\w*_$|^aten::set_$")
"""Hand out memory that nothing has written yet."""

_METADATA: Final = lazy_pattern(
    r"^aten::(detach|requires_grad|rename|t|transpose|squeeze|unsqueeze|swapaxes|swapdims|"
    r"as_strided|set|_?resize\w*)_$|^aten::(record_stream|retain_grad|_version|is_(?!nonzero)\w+)$|"
    r"^_c10d_functional::_wrap_tensor_autograd$"
)
"""Take tensors, and touch no data."""

_LIKE: Final = lazy_pattern(r"^aten::(\w+_like|new_\w+)$")
"""Make tensors after the shape of their argument, whose data they do not read."""

_OVERWRITES: Final = lazy_pattern(
    r"^aten::(copy|_foreach_copy|fill|zero|_foreach_zero|normal|uniform|random|bernoulli|"
    r"exponential|geometric|cauchy|log_normal)_$"
)
"""Write their first argument without reading it."""

_SCHEMA: Final = lazy_pattern(
    r"(?P<name>[^.(]+)(?:\.[^(]*)?\((?P<arguments>.*)\) -> (?P<returns>.*)", re.DOTALL
)
"""Each part ends where the next can begin, so that a text that is no schema costs no more."""


def operators(schemas: list[str]) -> Operators:
    """The operators of some schemas, in their order.

    Nothing is known of an empty one; of one that cannot be read, all arguments are read.
    """
    count = len(schemas)
    found = Operators(
        known=np.array([bool(schema) for schema in schemas], np.bool_),
        reads=np.ones((count, ARGUMENTS), np.bool_),
        writes=np.zeros((count, ARGUMENTS), np.bool_),
        in_place=np.zeros(count, np.bool_),
        allocates=np.zeros(count, np.bool_),
        asks=np.array([schema.startswith(REQUEST) for schema in schemas], np.bool_),
    )
    for row, schema in enumerate(schemas):
        match = _SCHEMA.match(schema)
        if match is not None:
            _fill(found, row, match)
    return found


def _fill(found: Operators, row: int, match: re.Match[str]) -> None:
    name = match["name"]
    found.allocates[row] = bool(_ALLOCATES.match(name) or _METADATA.match(name))
    if found.allocates[row] or _LIKE.match(name):
        found.reads[row] = False
        return
    arguments = _split(match["arguments"])
    # What an operator is given by name, as `out`, it only fills.
    by_name = arguments.index("*") if "*" in arguments else len(arguments)
    overwrites = bool(_OVERWRITES.match(name))
    arguments = [argument for argument in arguments if argument != "*"][: ARGUMENTS - 1]
    for place, argument in enumerate(arguments):
        if "!" in argument:
            found.writes[row, place] = True
            found.reads[row, place] = place < by_name and not overwrites
    if name.endswith("_") and not found.writes[row].any():
        found.in_place[row] = True
        outputs = [place for place, argument in enumerate(arguments) if "output" in argument]
        found.reads[row, outputs] = False
        found.writes[row, outputs or [0]] = "Tensor" not in match["returns"] or bool(outputs)


def _split(arguments: str) -> list[str]:
    """The arguments of a schema; commas inside brackets do not part them."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(arguments):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(arguments[begin:place].strip())
            begin = place + 1
    return [*parts, arguments[begin:].strip()]
