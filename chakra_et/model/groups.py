"""Process groups: which ranks communicate with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.json_text import from_json

_DIGITS: Final = 18
"""More are no number of anything, and thousands Python refuses to convert."""


class GroupsError(FormatError, ValueError):
    """The process groups that a trace tells are no list of such."""


class ProcessGroup(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"name": "pg_name", "description": "pg_desc"},
):
    """A communicator.

    `name` is opaque text, the one that nodes carry as `pg_name`. `ranks` are global ranks in the
    group's own order; empty means that they are not known. `size` is the number of members, 0 if
    unknown. `source` says where the facts come from; `inferred` marks a group that no input names.
    """

    name: str
    ranks: tuple[int, ...] = ()
    size: int = 0
    description: str = ""
    source: str = ""
    inferred: bool = False


def number_in_name(name: str) -> int | None:
    """The number that is a group's name; None if the name is none."""
    return int(name) if name.isascii() and name.isdigit() and len(name) <= _DIGITS else None


def encode_groups(groups: Sequence[ProcessGroup]) -> str:
    """The groups as the JSON text of the trace attribute `process_groups`."""
    return msgspec.json.encode(list(groups)).decode()


def decode_groups(text: str) -> tuple[ProcessGroup, ...]:
    """The groups in the JSON text of the trace attribute `process_groups`.

    Raises GroupsError when the text is not such a list.
    """
    try:
        return from_json(text, type=tuple[ProcessGroup, ...])
    except msgspec.DecodeError as error:
        raise GroupsError(
            f"process_groups, an attribute of the trace, lists no process groups: {error}",
            remedy="`chakra validate` says what is wrong with it; write the trace again.",
        ) from error
