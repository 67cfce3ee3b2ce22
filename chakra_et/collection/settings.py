"""What is asked of a recording."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from chakra_et.errors import ChakraError


@dataclass(frozen=True)
class Settings:
    """Which steps to record, what of them, and where to.

    `warmup` steps run first, without the profiler; in one more the profiler gets ready; then
    `steps` are recorded.
    """

    directory: str
    steps: int = 3
    warmup: int = 2
    memory: bool = False
    stack: bool = False
    force: bool = False
    notes: str | None = None
    """A directory in which processes tell how far they came; None where nobody reads that."""
    until_step: str = "c.step()"
    """What ends a step, in words."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("warmup", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ChakraError(
                    f"{name} is {value!r}", remedy=f"Give a whole number from {least} on."
                )

    @property
    def needed(self) -> int:
        """How many steps a program must run, so that all is recorded."""
        return self.warmup + 1 + self.steps

    def encoded(self) -> str:
        """For the environment of another process."""
        return json.dumps(asdict(self))

    @classmethod
    def decoded(cls, text: str) -> Settings:
        """What `encoded` wrote."""
        return cls(**json.loads(text))

    def told(self) -> dict[str, Any]:
        """What a manifest says of them."""
        names = ("steps", "warmup", "memory", "stack")
        return {"step_ends_with": self.until_step, **{name: getattr(self, name) for name in names}}
