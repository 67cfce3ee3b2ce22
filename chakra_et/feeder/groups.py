"""Process groups from `comm_groups.json`, as ASTRA-sim takes them: {"1": [0, 2], "2": [1, 3]}."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from chakra_et.feeder.errors import Code, FeederError

Rank = Annotated[int, msgspec.Meta(ge=0)]

_NAMES: Final = ("comm_groups.json", "comm_group.json")
_DECODER: Final = msgspec.json.Decoder(dict[str, list[Rank]])
_LONGEST: Final = 1 << 26  # bytes of a file


def groups_beside(trace: Path) -> dict[str, list[int]]:
    """The ranks of each group, ascending, from the file beside a trace; none without a file."""
    for name in _NAMES:
        path = trace.parent / name
        if path.is_file():
            return read_groups(path)
    return {}


def read_groups(path: Path) -> dict[str, list[int]]:
    """The ranks of each group, ascending. Raises FeederError for a file of anything else."""
    try:
        if path.stat().st_size > _LONGEST:
            raise FeederError(Code.BAD_GROUPS, "the file is too long", path=path)
        groups = _DECODER.decode(path.read_bytes())
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise FeederError(Code.IO, problem, path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FeederError(
            Code.BAD_GROUPS,
            f"process groups cannot be read: {error}",
            path=path,
            remedy='Write an object with a list of ranks for each group: {"1": [0, 2]}.',
        ) from None
    return {name: sorted(ranks) for name, ranks in groups.items()}
