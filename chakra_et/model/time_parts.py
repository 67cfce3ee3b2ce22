"""The attribute `time_parts`: whose time the interval of a node holds, beside the node's own.

A host node lasts to the next start on its thread. So it holds, too, what its callers do after it,
and the pause until anything goes on. `12:1029000 gap:57000` says that 1,029,000 ns are time of the
node with id 12, which called this one, and 57,000 ns nobody's; the rest is the node's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.codes import begins, distinct, order_of
from chakra_et.columns import Rows
from chakra_et.definitions import Kind, NodeType
from chakra_et.kernel import kernel
from chakra_et.model.packed_values import JoinedTexts
from chakra_et.patterns import lazy_pattern

if TYPE_CHECKING:
    from chakra_et.model.nodes import Nodes

NAME: Final = "time_parts"
GAP: Final = -1
"""The owner of time in which a thread does nothing that was recorded: mostly Python's."""
_GAP: Final = "gap"
_AS_LONG_AS_GAP: Final = np.uint64(100)
_ANNOTATION: Final = "user_annotation"
_PARTS: Final = lazy_pattern(
    r"(?:(?:gap|[0-9]{1,20}):[0-9]{1,18} )*(?:gap|[0-9]{1,20}):[0-9]{1,18}"
)
_MANY: Final = 4096
_KEPT: Final = "_time_parts_told"


class TimeParts(msgspec.Struct, frozen=True):
    """The parts of the durations of all nodes, by node and then in the order of time.

    `node[i]` is the row of the node that holds part i, `owner[i]` the row of the node whose time it
    is, or `GAP`, and `ns[i]` its length. Each node has one part or more, one of which is its own,
    if only of 0 ns; they add up to its duration.
    """

    node: Rows
    owner: Rows
    ns: Rows

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        """Which parts are the own ones of the nodes that hold them."""
        return np.asarray(self.owner == self.node)

    @property
    def gap(self) -> npt.NDArray[np.bool_]:
        """Which parts are nobody's."""
        return np.asarray(self.owner == GAP)

    def by_node(self, count: int) -> Rows:
        """The duration of each of `count` nodes."""
        return _sums(self.node, self.ns, count)

    def by_owner(self, count: int) -> Rows:
        """How much time each of `count` nodes owns, wherever it lies."""
        owned = ~self.gap
        return _sums(self.owner[owned], self.ns[owned], count)

    def placed(self, start_ns: Rows) -> tuple[Rows, Rows]:
        """When each part begins and ends, if the nodes that hold them begin at `start_ns`."""
        ends = np.cumsum(self.ns)
        first = np.searchsorted(self.node, np.arange(len(start_ns)))
        ends += (start_ns - (ends - self.ns)[first])[self.node]
        return ends - self.ns, ends

    def fitted(self, duration_ns: Rows) -> TimeParts:
        """The parts of nodes with other durations: a node's own part takes up the difference.

        Where the others are longer than the node now is, they shrink in proportion.
        """
        own, ns = self.own, self.ns.copy()
        others = _sums(self.node[~own], ns[~own], len(duration_ns))
        for part in np.flatnonzero(~own & (others > duration_ns)[self.node]).tolist():
            row = self.node[part]
            # Whole numbers of any size: products of times exceed 64 bits.
            ns[part] = int(ns[part]) * int(duration_ns[row]) // int(others[row])
        others = _sums(self.node[~own], ns[~own], len(duration_ns))
        ns[own] = (duration_ns - others)[self.node[own]]
        return replace(self, ns=ns)

    @property
    def of_others(self) -> TimeParts:
        """The parts that are not the own ones of nodes, and last: those that a file tells."""
        told = np.flatnonzero(~self.own & (self.ns > 0))
        return TimeParts(self.node[told], self.owner[told], self.ns[told])

    def moved(self, new_row: Rows) -> TimeParts:
        """The parts after nodes moved: row r went to `new_row[r]`."""
        node, owner = new_row[self.node], np.where(self.gap, GAP, new_row[self.owner])
        order = np.argsort(node, kind="stable")
        return TimeParts(node[order], owner[order], self.ns[order])


def time_parts(nodes: Nodes) -> TimeParts:
    """Whose time the durations of all nodes are.

    A node whose attribute cannot be read, or says more than the node's duration, is its own owner;
    so is a part whose owner is not in the file.
    """
    count = len(nodes)
    node, owner, ns, _ = _told(nodes)
    own = nodes.duration_ns - _sums(node, ns, count)
    sound = own[node] >= 0
    node, owner, ns = node[sound], owner[sound], ns[sound]
    own = nodes.duration_ns - _sums(node, ns, count)
    lead = np.maximum(nodes.start_ns - nodes.attributes.dense("own_start_ns", 0, np.int64), 0)
    lead[~nodes.attributes.present("own_start_ns")] = 0
    # What lies before the node's own start is what was left of the node before it.
    before = _until(node, ns) <= lead[node]
    rows = np.arange(count)
    everyone = np.concatenate((node, rows))
    place = np.concatenate((np.where(before, 0, 2), np.ones(count, np.int64)))
    order = order_of(everyone, place)
    return TimeParts(
        everyone[order], np.concatenate((owner, rows))[order], np.concatenate((ns, own))[order]
    )


def between_operations(nodes: Nodes, parts: TimeParts) -> npt.NDArray[np.bool_]:
    """Which parts are time between operations, mostly Python's: gaps, and what annotations own.

    An annotation (`record_function`, a step of the profiler) does nothing itself.
    """
    annotates = np.zeros(len(nodes), np.bool_)
    for column in nodes.attributes.named("category"):
        named = [category == _ANNOTATION for category in column.values]
        annotates[column.rows] = np.array(named, np.bool_)
    annotates &= nodes.type == NodeType.COMP
    return np.asarray(parts.gap | np.append(annotates, False)[parts.owner])


def set_time_parts(nodes: Nodes, parts: TimeParts) -> None:
    """Give nodes the attribute that says this, in place of what they had."""
    nodes.__dict__.pop("self_ns", None)
    for column in nodes.attributes.named(NAME):
        nodes.attributes.remove(column, column.rows)
    parts = parts.of_others
    node, owner = parts.node, parts.owner
    if len(node) == 0:
        return
    first = np.flatnonzero(begins(node))
    borders = np.append(first, len(node))
    texts = _told_of(nodes.id[owner], parts.gap, parts.ns, borders)
    nodes.attributes.add(NAME, Kind.STRING, JoinedTexts.of(texts), node[first])
    nodes.__dict__[_KEPT] = _said(nodes), (node, owner, parts.ns, [])


def _told_of(
    ids: npt.NDArray[np.uint64], gaps: npt.NDArray[np.bool_], ns: Rows, borders: Rows
) -> list[bytes]:
    """What the attribute says of the parts between each two borders, which are one node's.

    A text for each node, with a line's end behind it, in pieces.
    """
    if (module := kernel()) is not None:
        return [module.say_parts(ids, gaps, ns, borders)]
    texts = []
    for begin in range(0, len(borders) - 1, _MANY):
        of_some = borders[begin : begin + _MANY + 1]
        some = slice(of_some[0], of_some[-1])
        texts.append(_in_words(ids[some], gaps[some], ns[some], of_some[:-1] - of_some[0]))
    return texts


def _in_words(
    ids: npt.NDArray[np.uint64], gaps: npt.NDArray[np.bool_], ns: Rows, first: Rows
) -> bytes:
    """What the attribute says of parts, of which a node's own begin at each place in `first`.

    A text for each node, with a line's end behind it.
    """
    numbers = np.stack((np.where(gaps, _AS_LONG_AS_GAP, ids), ns.view(np.uint64)), axis=1)
    # An encoder writes all numbers at once; what stands between them is changed afterwards.
    said = np.frombuffer(bytearray(msgspec.json.encode(numbers.ravel().tolist())), np.uint8)
    commas = np.flatnonzero(said == ord(","))
    begin = np.append(0, commas[1::2])[gaps] + 1
    for place, letter in enumerate(_GAP.encode()):
        said[begin + place] = letter
    said[commas] = ord(" ")
    said[commas[::2]] = ord(":")
    said[commas[2 * first[1:] - 1]] = said[-1] = ord("\n")
    return said[1:].tobytes()


def unreadable(nodes: Nodes) -> Rows:
    """Rows whose attribute cannot be read, names a missing node, or exceeds the duration."""
    node, owner, ns, wrong = _told(nodes)
    wrong += node[owner == node].tolist()
    wrong += np.flatnonzero(_sums(node, ns, len(nodes)) > nodes.duration_ns).tolist()
    return distinct(np.array(wrong, np.int64))


def _told(nodes: Nodes) -> tuple[Rows, Rows, Rows, list[int]]:
    """Node, owner and length of each part that is told; the owner is the node if not found.

    And the rows whose text says something else. It is kept as long as ids and texts are the same.
    """
    said = _said(nodes)
    kept, found = nodes.__dict__.get(_KEPT, ((), None))
    if found is None or [*map(id, kept)] != [*map(id, said)]:
        found = _read(nodes)
        nodes.__dict__[_KEPT] = said, found
    node, owner, ns, wrong = found
    return node, owner, ns, list(wrong)


def keep_told(nodes: Nodes, copies: Nodes) -> None:
    """Let copies of all nodes, in the same rows, know what these were found to say."""
    kept, found = nodes.__dict__.get(_KEPT, ((), None))
    if found is not None and [*map(id, kept)] == [*map(id, _said(nodes))]:
        copies.__dict__[_KEPT] = _said(copies), found


def _said(nodes: Nodes) -> tuple[Any, ...]:
    """All that the attribute says something by."""
    return (nodes.id, *nodes.attributes.named(NAME))


def _read(nodes: Nodes) -> tuple[Rows, Rows, Rows, list[int]]:
    """The same, of the texts."""
    rows, texts = _texts(nodes)
    pairs, wrong = _pairs(texts), []
    if pairs is None:
        wrong = [row for row, text in enumerate(texts) if _pairs([text]) is None]
        texts = np.delete(np.array(texts, object), wrong).tolist()
        wrong, rows = rows[wrong].tolist(), np.delete(rows, wrong)
        pairs = _pairs(texts)
        assert pairs is not None
    gaps, ids, ns = pairs
    node = np.repeat(rows, [text.count(" ") + 1 for text in texts])
    named = nodes.rows_of(ids)
    return node, np.where(gaps, GAP, np.where(named < 0, node, named)), ns, wrong


def _texts(nodes: Nodes) -> tuple[Rows, list[str]]:
    """The rows that have the attribute, and what it says there."""
    rows, texts = [np.zeros(0, np.int64)], []
    for column in nodes.attributes.named(NAME):
        if column.key.kind is Kind.STRING and not column.key.occurrence:
            rows.append(column.rows)
            texts += column.values
    return np.concatenate(rows), texts


def _pairs(texts: list[str]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64], Rows] | None:
    """Of each part in some texts: whether it is a gap, else the id of its owner, and its length.

    None where one of the texts says something else.
    """
    if not texts:
        return np.zeros(0, np.bool_), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    # Many texts at one look: a run has as many of them as nodes.
    some = (" ".join(texts[first : first + _MANY]) for first in range(0, len(texts), _MANY))
    items: list[str] = []
    for said in some:
        if _PARTS.fullmatch(said) is None:
            return None
        items += said.replace(":", " ").split(" ")
    gaps = np.array([owner == _GAP for owner in items[::2]], np.bool_)
    try:
        ids = np.array([0 if owner == _GAP else int(owner) for owner in items[::2]], np.uint64)
    except OverflowError:
        return None
    return gaps, ids, np.array(list(map(int, items[1::2])), np.int64)


def _sums(rows: Rows, values: Rows, count: int) -> Rows:
    """The sum of the values of each row."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, rows, values)
    return sums


def _until(node: Rows, ns: Rows) -> Rows:
    """How far into its node each part ends, the node's own part left out; nodes stand together."""
    total = np.cumsum(ns)
    first = np.append(True, node[1:] != node[:-1])[: len(node)]
    begins = np.flatnonzero(first)
    before = np.append(0, total)[begins]
    return np.asarray(total - before[np.cumsum(first) - 1])
