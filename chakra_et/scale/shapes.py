"""Shapes of tensors in the texts of nodes: flat lengths, and others in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from chakra_et.build.operation import DTYPES
from chakra_et.io.json_text import from_json
from chakra_et.model import Nodes

_BYTES: Final = {f"Tensor({called})": size for size, called in DTYPES.values()}
_SHAPES, _TYPES = 1, 2

Text = tuple[bytes, ...]


class Texts:
    """The inputs and outputs of nodes, with other lengths where they are asked for."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._texts: list[Text] = list(nodes.texts)
        self._known: dict[Text, int] = {text: code for code, text in enumerate(self._texts)}

    def lengths(self, code: int) -> list[int]:
        """The lengths of the flat tensors of a text, in order; -1 for those of other shapes."""
        shapes = self._shapes(code)
        return [] if shapes is None else [_flat(shape) for shape in shapes]

    def element_bytes(self, code: int) -> int | None:
        """Bytes of an element of the first tensor; None where the text does not tell."""
        if code < 0:
            return None
        try:
            types = from_json(self._texts[code][_TYPES])
        except (msgspec.DecodeError, IndexError):
            return None
        return _BYTES.get(types[0]) if isinstance(types, list) and types else None

    def put(self, code: int, lengths: Mapping[int, int] | Callable[[list[int]], list[int]]) -> int:
        """The code of a text with other lengths of flat tensors: by a table, or all at once."""
        shapes = self._shapes(code)
        if shapes is None:
            return code
        before = [_flat(shape) for shape in shapes]
        after = lengths(before) if callable(lengths) else [lengths.get(n, n) for n in before]
        if after == before:
            return code
        new = [shape if a == b else [a] for shape, b, a in zip(shapes, before, after, strict=True)]
        text = list(self._texts[code])
        text[_SHAPES] = msgspec.json.encode(new)
        found = self._known.setdefault(tuple(text), len(self._texts))
        if found == len(self._texts):
            self._texts.append(tuple(text))
        return found

    def finish(self) -> None:
        """Give the nodes the texts."""
        self._nodes.texts = self._texts

    def _shapes(self, code: int) -> list[Any] | None:
        if code < 0:
            return None
        try:
            shapes = from_json(self._texts[code][_SHAPES])
        except (msgspec.DecodeError, IndexError):
            return None
        return shapes if isinstance(shapes, list) else None


def _flat(shape: Any) -> int:
    """The length of a tensor of one dimension; -1 for another."""
    flat = isinstance(shape, list) and len(shape) == 1 and isinstance(shape[0], int)
    return int(shape[0]) if flat else -1
