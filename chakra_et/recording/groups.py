"""Process groups as a recording lists them."""

from __future__ import annotations

import msgspec


class GroupEntry(msgspec.Struct):
    """One group; `ranks` are global ranks, empty where the recording does not list them.

    `size` is 0 where it is not told, `source` says who lists the group. `cut` tells that the list
    of ranks was cut. `number` is what older records call the group by.
    """

    name: str
    source: str
    size: int = 0
    ranks: list[int] = msgspec.field(default_factory=list)
    description: str = ""
    cut: bool = False
    number: int | None = None
