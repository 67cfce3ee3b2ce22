"""Policies: what may stay in a trace that is given away. What a policy does not name is gone."""

from __future__ import annotations

from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.anonymise.rules import RULES
from chakra_et.errors import ChakraError

_LONGEST_NS: Final = 1_000_000_000
_MOST_BYTES: Final = 1 << 16


class Names(Enum):
    """What is left of a node's name."""

    PUBLIC = "public"
    """Names of public operators as they are; of others the family and a pseudonym."""
    FAMILY = "family"
    """The family and a pseudonym."""
    TYPE = "type"
    """The type of the node."""


class Shapes(Enum):
    """What is left of the shapes of tensors."""

    KEEP = "keep"
    ROUND = "round"
    """Each length as the next power of two."""
    DROP = "drop"


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may stay.

    Sizes and amounts of work change by at most `size_error`, durations by `time_error` and rounding
    to `time_grid_ns`; `span_error` is what the replayed span changes by at most. `keep` names the
    attributes that stay, each by the rule that is known for it.
    """

    title: str
    protects: str
    leaks: str
    names: Names
    shapes: Shapes
    types: bool
    size_error: float
    time_error: float
    time_grid_ns: int
    shuffle_ranks: bool
    merge: bool
    span_error: float
    keep: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.keep) - set(RULES))
        if unknown:
            raise ValueError(f"no rule is known for {', '.join(unknown)}")
        if self.time_grid_ns > _LONGEST_NS:
            raise ValueError("the grid is at most 1 s")
        if not 0 <= self.size_error < 1 or not 0 <= self.time_error < 1 or self.time_grid_ns < 1:
            raise ValueError("errors are at least 0 and less than 1, the grid is at least 1 ns")


READY: Final = ("partner", "publish", "coarse")


def load_policy(name: str) -> Policy:
    """A policy that is ready to use, or one in a TOML file."""
    try:
        if name in READY:
            text = files("chakra_et.anonymise").joinpath(f"policies/{name}.toml").read_text()
        else:
            text = _read(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        raise ChakraError(
            f"no policy {name!r}: {error}",
            remedy=f"Name one of {', '.join(READY)}, or a TOML file like them.",
        ) from error
    try:
        return msgspec.toml.decode(text, type=Policy)
    except RecursionError as error:
        raise ChakraError(
            f"{name}: nested too deep", remedy="docs/anonymise.md explains policies."
        ) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise ChakraError(
            f"{name}: {error}", remedy="docs/anonymise.md explains policies."
        ) from error


def _read(path: Path) -> str:
    """The text of a policy; a device or a large file is none."""
    with path.open("rb") as stream:
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ChakraError(
            f"more than {_MOST_BYTES >> 10} KiB, too much for a policy",
            path=path,
            remedy="Name a TOML file like those in chakra_et/anonymise/policies.",
        )
    return data.decode()
