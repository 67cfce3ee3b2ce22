"""Rules across ranks: what must fit together between traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.shown import shortened
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.messages import pair_messages
from chakra_et.validators.rule import run_rule
from chakra_et.validators.sequences import Sequence, group_label, sequences
from chakra_et.validators.view import ABSENT, RunView

_LISTED: Final = 8


@run_rule(
    "ET501",
    "Ranks are missing.",
    why="Those that are there wait for them; ASTRA-sim stops at the first missing file.",
    cure="Add their files, or make the network no larger than the number of traces.",
)
def missing_ranks(run: RunView) -> Hits:
    """Holes among the ranks of a run.

    A single trace is no run, unless comm_groups.json beside it shows that a simulator is to run it.
    """
    if len(run.views) < 2 and run.group_file is None:
        return NOTHING
    world = max(run.world_size or 0, max(run.views) + 1)
    missing = [rank for rank in range(world) if rank not in run.views]
    if not missing:
        return NOTHING
    listed = ", ".join(map(str, missing[:_LISTED])) + (" …" if len(missing) > _LISTED else "")
    return Hits.of([Finding(f"{len(missing)} of {world} ranks: {listed}")])


@run_rule(
    "ET502",
    "A rank takes part in fewer or more collectives of a group than others.",
    why="The others wait forever; ASTRA-sim ends with exit code 0 and part of the ranks finished.",
    cure="Cut all ranks at the same step; check whether the profiler dropped records of one.",
    kin="ET407 ET503",
)
def other_count(run: RunView) -> Hits:
    """Sequences of another length than most have, with the first place where they part ways."""
    found = []
    for key, group in sequences(run).items():
        members = _expected(run, key)
        usual = _usual_count(group, min(len(members), len(run.views)))
        other = next((s for s in group if len(s.rows) == usual), None)
        for s in group:
            if not s.least <= usual <= len(s.rows):
                found.append(_count_finding(s, other, group_label(key), usual))
        present = {s.rank for s in group}
        for rank in members if usual else ():
            if rank in run.views and rank not in present:
                text = f"no collective of {group_label(key)}, where others have {usual}"
                found.append(Finding(text, rank, path=run.views[rank].path))
    return Hits.of(found)


def _usual_count(group: list[Sequence], members: int) -> int:
    """The number of collectives that most members may have; the largest of several.

    A rank may have fewer than it shows: a collective of unknown type counts for none or one.
    """
    ranges = [(s.least, len(s.rows)) for s in group]
    ranges += [(0, 0)] * max(0, members - len(group))
    bounds = {bound for both in ranges for bound in both}
    fitting = {n: sum(low <= n <= high for low, high in ranges) for n in bounds}
    return max(bounds, key=lambda n: (fitting[n], n))


def _expected(run: RunView, key: tuple[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The ranks that take part in a group's collectives; none where nobody tells its members.

    A group without an entry in any table is taken for one of all ranks.
    """
    name, ranks = key
    known = any(name in view.group_of for view in run.views.values())
    return ranks or (() if name and known else tuple(run.views))


@run_rule(
    "ET503",
    "Ranks begin the collectives of a group in different orders, or different ones.",
    why="Each waits for the other: a deadlock on the machine, and a silent one in ASTRA-sim.",
    cure="Order the calls the same way on all ranks; ids ascend as calls were made.",
    kin="ET502 ET504 ET718",
)
def other_order(run: RunView) -> Hits:
    """The first place at which a rank's collective is not that of the others."""
    found = []
    for key, group in sequences(run).items():
        for s, usual, at in _partings(group):
            again = _signature(s) == _signature(usual)
            what = "in another order" if again else "another collective"
            found.append(_pair(s, usual, at, f"{group_label(key)}, {what}"))
    return Hits.of(found)


@run_rule(
    "ET504",
    "Ranks pass different sizes to one collective.",
    why="ASTRA-sim never finishes it and reports nothing.",
    cure="Check the shapes on both ranks; a size in elements instead of bytes is common.",
    kin="ET503",
)
def other_size(run: RunView) -> Hits:
    """Collectives of one type whose sizes have to be equal and are not."""
    found = []
    for key, group in sequences(run).items():
        parted = {s.rank: at for s, _, at in _partings(group)}
        alike = [s for s in group if len(s.rows) == len(group[0].rows)]
        if len(alike) < 2 or len(alike) < len(group):
            continue
        sizes = _filled(np.stack([s.strict_sizes() for s in alike]))
        for at in np.flatnonzero((sizes != sizes[0]).any(0)).tolist():
            usual_size, _ = Counter(sizes[:, at].tolist()).most_common(1)[0]
            usual = alike[int(np.flatnonzero(sizes[:, at] == usual_size)[0])]
            for s in alike:
                if sizes[alike.index(s), at] != usual_size and at < parted.get(s.rank, at + 1):
                    found.append(_pair(s, usual, at, f"{group_label(key)}, another size"))
    return Hits.of(found)


@run_rule(
    "ET505",
    "A send has no receive, or a receive no send.",
    why="The receiver never finishes, and ASTRA-sim reports nothing.",
    cure="Make tag, source and destination agree on both ranks, as global ranks.",
)
def unmatched_message(run: RunView) -> Hits:
    """Messages whose other side is not in the trace of the other rank."""
    found = []
    for m in pair_messages(run).unmatched:
        other = "receive" if m.is_send else "send"
        peer = m.dst if m.is_send else m.src
        text = f"{m.text}; rank {peer} has no {other} for it"
        found.append(run.views[m.rank].at(m.row, text))
    return Hits.of(found)


@run_rule(
    "ET506",
    "A send and its receive are of different sizes.",
    why="ASTRA-sim matches by size too: the receiver never finishes.",
    cure="Set comm_size on both to the bytes of the message.",
)
def other_message_size(run: RunView) -> Hits:
    """Sends and receives that match in all but size."""
    found = []
    for send, receive in pair_messages(run).unequal:
        other = run.views[receive.rank]
        text = (
            f"{send.text} of {send.size} bytes, but the receive on rank {receive.rank}, "
            f"node {other.nodes.id[receive.row]}, is of {receive.size}"
        )
        found.append(run.views[send.rank].at(send.row, text))
    return Hits.of(found)


@run_rule(
    "ET508",
    "The other rank of a message is not among the traces.",
    why="The message is never taken; a rank beyond the network stops ASTRA-sim.",
    cure="Use global ranks, and give the traces of all ranks.",
    kin="ET505",
)
def no_such_rank(run: RunView) -> Hits:
    """Peers that are no rank of the run, if more than one trace was given."""
    if len(run.views) < 2:
        return NOTHING
    found = []
    for view in run.views.values():
        for node_type, name in ((NodeType.COMM_SEND, "comm_dst"), (NodeType.COMM_RECV, "comm_src")):
            rows = view.of_type(node_type)
            peers = view.integers(name)[rows]
            strange = (peers != ABSENT) & ~np.isin(peers, list(run.views))
            for row, peer in zip(rows[strange].tolist(), peers[strange].tolist(), strict=True):
                found.append(view.at(row, f"{name} is {peer}"))
    return Hits.of(found)


@run_rule(
    "ET509",
    "Two files have the same rank.",
    why="One of them is ignored.",
    cure="Give each file its rank in its name, or each run its own directory.",
)
def doubled_rank(run: RunView) -> Hits:
    """Files whose rank another file has already."""
    return Hits.of(
        [Finding("an earlier file is of this rank", rank, path=path) for rank, path in run.doubled]
    )


def _partings(group: list[Sequence]) -> Iterator[tuple[Sequence, Sequence, int]]:
    """Ranks that part from most others, one of those others, and the ordinal where they do.

    Looks at types and, where two ranks have the same collectives in another order, at sizes.
    Sequences of different lengths are ET502's affair.
    """
    if len({len(s.rows) for s in group}) != 1 or len(group) < 2 or not len(group[0].rows):
        return
    # What one rank does not tell is no difference: ET205 and ET206 speak of it.
    types = _filled(np.stack([s.types for s in group]))
    keys = types
    sizes = _filled(np.stack([s.strict_sizes() for s in group]))
    if (types == types[0]).all():
        if len({_signature(s) for s in group}) > 1 or (sizes == sizes[0]).all():
            return
        keys = sizes
    at = int(np.flatnonzero((keys != keys[0]).any(0))[0])
    usual_key, _ = Counter(keys[:, at].tolist()).most_common(1)[0]
    usual = group[int(np.flatnonzero(keys[:, at] == usual_key)[0])]
    for place, s in enumerate(group):
        if keys[place, at] != usual_key:
            yield s, usual, at


def _filled(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Values by rank and ordinal; those that a rank does not tell become what another one tells."""
    known = np.where(columns >= 0, columns, np.iinfo(np.int64).max).min(0)
    return np.where(columns >= 0, columns, known)


def _signature(s: Sequence) -> tuple[tuple[int, int], ...]:
    """Which collectives a rank takes part in, whatever their order."""
    return tuple(sorted(zip(s.types.tolist(), s.strict_sizes().tolist(), strict=True)))


def _collective(s: Sequence, at: int) -> str:
    kind, size = int(s.types[at]), int(s.sizes[at])
    known = kind in CollectiveType._value2member_map_
    label = CollectiveType(kind).name if known else "no type" if kind < 0 else f"type {kind}"
    view = s.view
    amount = f"{size} bytes" if size >= 0 else "unknown size"
    return (
        f"{label} of {amount} (rank {s.rank}, node {view.nodes.id[s.rows[at]]} "
        f"{shortened(view.name(int(s.rows[at])), 40)!r})"
    )


def _pair(s: Sequence, usual: Sequence, at: int, what: str) -> Finding:
    """A finding that names both ranks, the group, the ordinal and both nodes."""
    text = f"{what} at ordinal {at}: {_collective(s, at)}, but {_collective(usual, at)}"
    return s.view.at(int(s.rows[at]), text)


def _count_finding(s: Sequence, other: Sequence | None, label: str, usual: int) -> Finding:
    text = f"{len(s.rows)} collectives of {label}, where others have {usual}"
    if other is None:
        return s.view.at(int(s.rows[0]), text)
    both = min(len(s.rows), len(other.rows))
    # What one of them does not tell is no difference.
    types = _filled(np.stack([s.types[:both], other.types[:both]]))
    sizes = _filled(np.stack([s.strict_sizes()[:both], other.strict_sizes()[:both]]))
    differ = (types[0] != types[1]) | (sizes[0] != sizes[1])
    at = int(np.argmax(differ)) if differ.any() else both
    mine = _collective(s, at) if at < len(s.rows) else f"nothing more (rank {s.rank})"
    theirs = _collective(other, at) if at < len(other.rows) else f"nothing more (rank {other.rank})"
    text += f"; they part at ordinal {at}: {mine}, but {theirs}"
    return s.view.at(int(s.rows[min(at, len(s.rows) - 1)]), text)
