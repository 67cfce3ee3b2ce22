"""The facts of one communication, as each source tells them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.recording.libraries import operation


class Facts(msgspec.Struct):
    """What is known of one communication; None where a source does not tell."""

    name: str | None = None
    size_bytes: int | None = None
    group: str | None = None
    group_number: int | None = None
    group_size: int | None = None
    group_ranks: list[int] | None = None
    """Global ranks; None also where the list was cut."""
    peer: int | None = None
    """The other side's global rank."""
    peer_in_group: int | None = None
    root_in_group: int | None = None
    """The place in the group of the rank that hands out, or gets, what a collective moves."""
    output_bytes: int | None = None
    """The bytes that this rank gets."""
    tag: int | None = None
    """What tells messages between the same two ranks apart."""
    sequence: int | None = None
    """Which collective of its group it is."""
    dtype: str | None = None
    own_rank: int | None = None
    """The global rank of the process that communicates, from its place in the group."""
    splits_cut: bool | None = None
    """Whether the sizes of the parts for each rank are known only in part."""
    sources: list[str] = msgspec.field(default_factory=list)

    @property
    def kind(self) -> CollectiveType | NodeType | None:
        """What the name stands for."""
        return operation(self.name) if self.name else None

    def merge(self, other: Facts | None) -> None:
        """Fill what is missing from another, lesser source.

        A name that is not known is missing too, where the other source has one that is.
        """
        if other is None:
            return
        filled = self.kind is None and other.kind is not None
        if filled:
            self.name = other.name
        for name in self.__struct_fields__:
            if getattr(self, name) is None and (told := getattr(other, name)) is not None:
                setattr(self, name, told)
                filled = True
        if filled:
            self.sources += other.sources

    def copy(self) -> Facts:
        """The same, for somebody who adds what else is told."""
        return replace(self, sources=[*self.sources])


class Request(msgspec.Struct):
    """What an operation tells that asks a backend for a transfer, beside the transfer itself.

    `group_size` is the number of ranks in its group, `root` the place of a rank in the group, so
    that the group is larger than that, and `group` the name of the group. `message` says that it
    sends or receives one message.
    """

    facts: Facts
    group_size: int | None = None
    root: int | None = None
    group: str | None = None
    message: bool = False
