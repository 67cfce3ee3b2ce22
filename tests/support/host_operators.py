"""Operators of host traces, told in a few words: `call("aten::relu", [x], [y])`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordings import HostRecording

from chakra_et.loading import load
from chakra_et.model import Trace

_NAMES = {4: "float", 8: "long int", 1: "bool"}


@dataclass(frozen=True)
class T:
    """A tensor: the ids of itself and its storage, its shape, and where it lies in the storage."""

    storage: int
    shape: tuple[int, ...] = (4,)
    offset: int = 0
    width: int = 4
    strides: tuple[int, ...] | None = None
    device: str = "cpu"

    @property
    def value(self) -> list[Any]:
        count = 1
        for extent in self.shape:
            count *= extent
        return [self.storage + 10_000, self.storage, self.offset, count, self.width, self.device]

    @property
    def type(self) -> str:
        return f"Tensor({_NAMES[self.width]})"


class Operators:
    """A host trace of operators on one thread, in their order."""

    def __init__(self) -> None:
        self.recording = HostRecording()
        self._next = 10

    def call(
        self,
        schema: str,
        inputs: list[Any],
        outputs: list[Any] | None = None,
        parent: int = 2,
        **attributes: Any,
    ) -> int:
        """Add a call, and give its id: the parent of calls within it."""
        number, self._next = self._next, self._next + 1
        name = schema.partition("(")[0].partition(".")[0] if "(" in schema else schema
        self.recording.op(
            number,
            name,
            parent=parent,
            rf_id=number,
            inputs=_texts(inputs),
            outputs=_texts(outputs or []),
            schema=schema if "(" in schema else "",
            **attributes,
        )
        return number

    def trace(self, folder: Path) -> Trace:
        """The trace that becomes of it."""
        return next(iter(load(self.recording.write(folder / "host.0.json")).values()))


def _texts(values: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    parts = [_text(value) for value in values]
    return [p[0] for p in parts], [p[1] for p in parts], [p[2] for p in parts]


def _text(value: Any) -> tuple[Any, Any, str]:
    if isinstance(value, T):
        return value.value, list(value.shape), value.type
    if isinstance(value, list):
        inner = [_text(item) for item in value]
        kinds = ",".join(kind for _, _, kind in inner)
        return [v for v, _, _ in inner], [s for _, s, _ in inner], f"GenericList[{kinds}]"
    if value is None:
        return "<None>", [], "None"
    if isinstance(value, str):
        return value, [], value.strip("<>") if value.startswith("<") else "String"
    kind = {bool: "Bool", int: "Int", float: "Double"}[type(value)]
    return value, [], kind
