"""Process groups from `comm_groups.json`, as ASTRA-sim takes them: {"1": [0, 2], "2": [1, 3]}."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from chakra_et.feeder.errors import Code, FeederError
from chakra_et.io.archive import members
from chakra_et.io.source import head

Rank = Annotated[int, msgspec.Meta(ge=0)]

_NAMES: Final = ("comm_groups.json", "comm_group.json")
_DECODER: Final = msgspec.json.Decoder(dict[str, list[Rank]])
_LONGEST: Final = 1 << 26  # bytes of a file


def groups_beside(trace: Path) -> dict[str, list[int]]:
    """The ranks of each group, ascending, from the file beside a trace; none without a file.

    What is beside a rank of an archive, or of a packed set, is in there, too.
    """
    packed = members(trace.parent) if trace.parent.is_file() else []
    for name in _NAMES:
        path = trace.parent / name
        if name in packed:
            return _groups(path, head(path, _LONGEST + 1))
        if path.is_file():
            return read_groups(path)
    return {}


def read_groups(path: Path) -> dict[str, list[int]]:
    """The ranks of each group, ascending. Raises FeederError for a file of anything else."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise FeederError(Code.IO, problem, path=path) from None
    return _groups(path, text)


def _groups(path: Path, text: bytes) -> dict[str, list[int]]:
    if len(text) > _LONGEST:
        raise FeederError(Code.BAD_GROUPS, "the file is too long", path=path)
    try:
        groups = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FeederError(
            Code.BAD_GROUPS,
            f"process groups cannot be read: {error}",
            path=path,
            remedy='Write an object with a list of ranks for each group: {"1": [0, 2]}.',
        ) from None
    return {name: sorted(ranks) for name, ranks in groups.items()}
