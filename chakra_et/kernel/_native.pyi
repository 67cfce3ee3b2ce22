"""What the compiled module holds.

Readers take in pieces of arrays of JSON objects, without their brackets, and give columns of all of
them when they are asked for these. A piece that is not sound, or holds anything that they do not
know, is not taken in: it is for the reader in Python. Codes are into the lists of distinct texts
beside them, in order of first use, column by column within each piece.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

INTERFACE: int
SIMD: str
"""The instructions that simdjson found on this machine."""

Column: TypeAlias = npt.NDArray[Any]
Texts: TypeAlias = tuple[Column, Column, list[bytes], list[bytes], Column, Column, Column]
"""The fields of `PackedTexts`, in order."""
Told: TypeAlias = tuple[str, str, npt.NDArray[np.int64], list[int | str]]
"""An attribute that some nodes have: name, declared type, places of the nodes, and values."""
Arrows: TypeAlias = tuple[Column, Column, Column, Column, Column]
"""Ends of arrows: category (a code), process, thread, id, and time in ns."""

class HostReader:
    def read(self, text: memoryview, size: int) -> int | None:
        """Take in a piece, the first `size` bytes of a text that has 64 zeros at its end.

        How many nodes it holds; None for one that is not taken in. Raises ValueError for a text
        without these zeros."""

    def take(
        self,
    ) -> tuple[dict[str, Column], list[str], list[str], Texts, list[bytes], list[Told]]:
        """The nodes taken in since this was asked last: columns of a PyTorch host trace, names,
        operator schemas, distinct inputs and outputs, and their strides. Attributes that only some
        nodes have come with the rows of these."""

class ProfileReader:
    def __init__(
        self,
        roles: dict[str, int],
        left_out: list[str],
        arrows: dict[str, int],
        op_role: int,
        no_role: int,
        kept_roles: list[int],
        tells: Callable[[str], bool],
    ) -> None:
        """Categories by their roles; those whose spans are left out; those whose arrows count, with
        the least id of an arrow that does. Spans of the kept roles keep their arguments, and those
        of names that `tells` is true for; each name is asked about once."""

    def read(self, text: memoryview, size: int) -> int | None:
        """Take in a piece as `HostReader.read` does: how many records it holds."""

    def take(
        self,
    ) -> tuple[
        dict[str, Column],
        list[Column],
        list[str],
        list[str],
        list[bytes],
        list[str],
        list[tuple[str, str, int]],
        list[str],
        list[Arrows],
        bytes,
    ]:
        """The records taken in since this was asked last: columns of spans, columns of arguments,
        categories, names, shapes; arguments as they stand in the file, empty where they are not
        kept; how many records of each category and phase there are; categories of arrows, their
        beginnings and their ends; and the records that are for Python, as JSON."""

class NodeWriter:
    def __init__(
        self, names: list[str], texts: Any, layouts: list[list[int]], tags: list[bytes]
    ) -> None:
        """What all nodes share. `layouts` has the attributes of each layout; `texts` are tuples of
        bytes, or the fields of `PackedTexts` by name. Raises UnicodeEncodeError for text that is
        not Unicode."""

    def take(
        self,
        columns: dict[str, Column],
        attributes: list[
            tuple[Column, bytes | None, Column | list[Any] | tuple[Column, list[str]]]
        ],
        last: list[int],
        extra: list[tuple[int, bytes]],
    ) -> None:
        """Have some nodes written next, whose rows count from 0. Attributes are rows, what stands
        before each value in its message, and the values: unsigned numbers, texts, codes and
        distinct texts, or (with None before) whole fields. Those of `last` stand behind all others
        where a node has them. Raises ValueError for columns of different lengths,
        UnicodeEncodeError for text that is not Unicode."""

    def write(self, first: int, last: int) -> bytes:
        """Of the nodes that were taken, those from `first` up to `last`, each with its length
        before it. Nodes are written in order, each once."""

def enclosing(lane: Column, start: Column, end: Column, order: Column, last: int) -> Column:
    """The innermost interval around each, as `chakra_et.linker.joining.nesting` says; `last` is the
    last digit of times."""

def shortest_edit(left: Column, right: Column, most: int) -> tuple[Column, Column, Column]:
    """Places in both, and lengths, of equal runs between the fewest items that either side has
    alone, from the last to the first; none where that are more than `most`."""

def search_rows(ordered: tuple[Column, ...], wanted: tuple[Column, ...], right: bool) -> Column:
    """As `chakra_et.codes.search_rows`, for columns of int64."""

def moments(order: Column, table: tuple[Column, ...], gap: int) -> tuple[Column, Column, Column]:
    """As `chakra_et.linker.time.owners.moments`, for rows in order of lane and start, and columns
    of the table: lane, start, end, and the row that each is nested in. `gap` stands for nobody."""

def owned_parts(
    pieces: tuple[Column, Column, Column], rows: Column, lane: Column, begin: Column, end: Column
) -> tuple[Column, Column, Column]:
    """As `chakra_et.linker.time.owners.owned_parts`, for some rows, their lanes and own times."""

def latest(lane: Column, values: Column, limits: Column) -> Column | None:
    """As `_latest` in chakra_et.linker.edges.thread.host_time. None for rows whose limits do not
    ascend on each lane, or with a value below the limit of the row before it."""

def edges_in_rows(
    target: Column,
    source: npt.NDArray[np.uint64],
    other: npt.NDArray[np.bool_],
    lesser: npt.NDArray[np.bool_],
    nodes: int,
) -> Column | None:
    """As `Edges.in_rows`, where `other` edges are no calls. None where a target is no row of so
    many nodes."""

def chains(
    nodes: int, source: Column, target: Column, in_order: npt.NDArray[np.bool_]
) -> tuple[Column, npt.NDArray[np.uint8]] | None:
    """As `chains` in chakra_et.graph.transitive_reduction. None for edges that do not lead forward,
    or whose nodes are not there."""

def say_parts(
    ids: npt.NDArray[np.uint64], gaps: npt.NDArray[np.bool_], ns: Column, borders: Column
) -> bytes:
    """What the attribute `time_parts` says of parts between each two borders: the id of the owner,
    or that the part is nobody's, and its length; a line for each."""

def call_tree(caller: Column, begun: Column) -> tuple[Column, Column, Column] | None:
    """Position, end and last begun of `CallTree` in chakra_et.linker.edges.data.call_tree. None
    where several nodes have one place in the order in which they began, or a caller is missing."""

def find_accesses(
    nodes: dict[str, Column],
    operators: dict[str, Column],
    tensors: dict[str, Column],
    memories: int,
    work_known: bool,
) -> tuple[Column, ...]:
    """The columns of `Accesses` in chakra_et.linker.edges.data.accesses, whose flags are uint8, by
    columns of what `find_accesses` there is given, and the number of memory of each tensor."""

def find_tensors(
    texts: list[bytes],
) -> tuple[Column, Column, Column, Column, Column, Column, Column] | None:
    """The tensors in JSON texts, as `_in_piece` in converters/pytorch/tensors.py has them: text,
    argument, storage, offset, number of elements, item size, end of the device's name. None where a
    text is no JSON."""

def find_tensors_at(
    characters: Column, offsets: Column, codes: Column
) -> tuple[Column, Column, Column, Column, Column, Column, Column] | None:
    """The same for texts that stand one behind the other, by their codes."""

def distinct_parts(
    bytes: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], list[bytes]]:
    """A code for each part between two offsets, and the distinct parts in order of first use."""

def containing(
    texts: Sequence[str], rows: npt.NDArray[np.int64], words: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Those of some rows of a list of texts that hold any of the words; empty texts hold none."""

def read_nodes(
    data: bytes,
    first: int,
    piece: int,
    nodes: list[int],
    sources: list[int],
    operands: list[int],
    wire_types: list[int],
) -> (
    tuple[
        dict[str, Column],
        list[bytes],
        list[list[bytes]],
        npt.NDArray[np.int32],
        list[tuple[int, ...]],
        list[tuple[bytes, int, Column, Column, Column, list[Any] | tuple[Column, Column]]],
        list[tuple[int, bytes]],
    ]
    | None
):
    """The nodes in an ET from a byte on, by the tags of their fields and the wire types of values:
    columns, names, texts (values, shapes, types), layout codes and layouts, attributes (name, kind,
    rows, and either numbers or codes and contents: texts, tuples of texts, or bytes; of texts that
    are mostly distinct, their places in `data` and lengths for contents, and no codes), and unknown
    fields by row. None for a file that is not as usual, or damaged. Distinct texts are found in
    pieces of `piece` bytes.
    """

def texts_at(data: bytes, starts: Column, lengths: Column, kind: int) -> tuple[Column, list[Any]]:
    """Codes and contents of texts of `read_nodes`, or of lists of them, at places and of lengths
    that it told."""

def pass_short(data: bytes, at: int) -> tuple[int, int]:
    """How many whole records with a length of one or two bytes, not 0, stand from a byte on, and
    where the first other one begins."""

def replay(
    plan: tuple[Column, ...],
) -> tuple[Column, Column, npt.NDArray[np.uint8], int] | None:
    """Start, end and whether it ran of each node of a plan: its duration, lag, start (without lag),
    and sources and targets of edges; and how many edges were followed. None for rows that no node
    has, and for times that do not fit into 64 bits."""

def replay_resolving(
    plan: tuple[Column, ...], waiting: tuple[Column, ...], many: int
) -> tuple[Column, Column, npt.NDArray[np.uint8], Column, Column, int, int] | None:
    """The same where calls find what they wait for: calls, where the streams of each begin, and the
    streams; device work, and the stream, the launching call and the end of that call's own part for
    each. Of more targets than `many`, only those that hold a call up are noted. Also the targets
    that were found, their calls, how often a node was picked, and how many edges were followed."""

def feeder_columns(
    data: npt.NDArray[np.uint8],
    first: int,
    max_record: int,
    told: list[tuple[bytes, int, int]],
    edge_kinds: bytes,
    edge_kinds_flag: int,
    odd_flag: int,
) -> tuple[dict[str, Column], list[Column], int] | None:
    """The nodes in an ET from a byte on as a feeder needs them: columns, the numbers told in three
    attributes (the bytes before the number, the node's flag, and another where it is not 0), and
    how many fields were read. `edge_kinds` is how the attribute of that name begins. None for a
    file that is damaged."""
