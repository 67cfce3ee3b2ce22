"""Laws of calls with known values: what goes in, moved as the collective moves it, comes out.

The reference moves what `inputs` gives by the definition of each collective, in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.benchmark.choices import ShrinkAs
from chakra_et.benchmark.comms.agree import agree
from chakra_et.benchmark.comms.call import DELAY, RECV, SEND, Call, Group
from chakra_et.benchmark.comms.listing import Listing
from chakra_et.benchmark.comms.shrink import shrink, shrunk
from chakra_et.benchmark.comms.values import inputs, output_sizes, outputs
from chakra_et.definitions import CollectiveType

Arrays = list[npt.NDArray[np.int64]]
KINDS = [kind.name for kind in CollectiveType]
ROOTED = ("BROADCAST", "REDUCE", "GATHER", "SCATTER")
SCATTERS = ("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK")


def moved(sides: Mapping[int, Call]) -> dict[int, Arrays]:
    """What each rank gets, by the definition of the collective."""
    first = next(iter(sides.values()))
    ranks = first.group.ranks
    given_ = {rank: inputs(call, rank) for rank, call in sides.items()}
    got: dict[int, Arrays] = {}
    for place, rank in enumerate(ranks):
        call, result = sides[rank], []
        for number in range(len(call.tensors)):
            every = [given_[r][number] if given_[r] else None for r in ranks]
            root = every[ranks.index(call.root)] if call.root is not None else None
            if first.kind in ("ALL_REDUCE", "REDUCE"):
                result.append(np.sum([e for e in every if e is not None], axis=0))
            elif first.kind == "BROADCAST":
                result.append(root)
            elif first.kind in ("ALL_GATHER", "GATHER"):
                result.append(np.concatenate([e for e in every if e is not None]))
            elif first.kind == "SCATTER":
                assert root is not None
                result.append(np.split(root, len(ranks))[place])
            elif first.kind in SCATTERS:
                whole = np.sum([e for e in every if e is not None], axis=0)
                ends = np.cumsum(call.sends or (len(whole) // len(ranks),) * len(ranks))
                result.append(np.split(whole, ends[:-1])[place])
            elif first.kind == "ALL_TO_ALL":
                sent = [np.split(e, np.cumsum(sides[r].sends)[:-1])[place]
                        for r, e in zip(ranks, every, strict=True) if e is not None]  # fmt: skip
                result.append(np.concatenate(sent))
        on_root_only = first.kind in ("REDUCE", "GATHER") and rank != call.root
        got[rank] = [] if on_root_only or first.kind == "BARRIER" else result
    return got


@st.composite
def listings(draw: st.DrawFn) -> Listing:
    """One collective of a few ranks, even or not, of one tensor or several."""
    kind = draw(st.sampled_from(KINDS))
    ranks = tuple(sorted(draw(st.sets(st.integers(0, 9), min_size=2, max_size=5))))
    root = draw(st.sampled_from(ranks)) if kind in ROOTED else None
    many = kind in ("ALL_REDUCE", "ALL_GATHER", *SCATTERS) and draw(st.booleans())
    size = draw(st.integers(0, 40))
    tensors = (size,) if not many else tuple(draw(st.lists(st.integers(0, 20), min_size=1)))
    if many and kind in SCATTERS:
        tensors = tuple(n * len(ranks) for n in tensors)
    shares = st.lists(st.integers(0, 9), min_size=len(ranks), max_size=len(ranks))
    calls = {}
    for rank in ranks:
        mine, sends = tensors, ()
        if kind == "BARRIER":
            mine = (0,)
        elif kind == "ALL_TO_ALL":
            sends = tuple(draw(shares))
            mine = (sum(sends),)
        elif kind == "ALL_GATHER" and not many:
            mine = (draw(st.integers(0, 20)),)
        elif kind == "SCATTER" and rank == root:
            mine = (size * len(ranks),)
        calls[rank] = [
            Call(node=rank, kind=kind, group=Group("g", ranks), place=0, tensors=mine, sends=sends,
                 root=root, coalesced=many, recorded_ns=5)
        ]  # fmt: skip
    return Listing(10, calls)


def expect_right(sides: Mapping[int, Call]) -> None:
    reference = moved(sides)
    for rank, call in sides.items():
        wanted = outputs(call, rank)
        assert [w.tolist() for w in wanted] == [r.tolist() for r in reference[rank]]
        if wanted:
            assert output_sizes(call, rank) == tuple(map(len, wanted))


def only(listing: Listing) -> dict[int, Call]:
    return {rank: call for rank, (call,) in listing.calls.items()}


@given(listings())
def test_what_comes_out_is_what_went_in_moved(listing: Listing) -> None:
    assert agree(listing) == []
    expect_right(only(listing))


@given(listings(), st.data())
def test_fewer_ranks_still_fit_together(listing: Listing, data: st.DataObject) -> None:
    """Each pair that is left exchanges what it did, and outputs are still inputs moved."""
    assert agree(listing) == []
    before = only(listing)
    ranks = list(before)
    kept = data.draw(st.sets(st.sampled_from(ranks), min_size=2), label="kept")
    left = shrink(Listing(10, {r: listing.calls[r] for r in sorted(kept)}), ShrinkAs.GROUP)
    after = only(left)
    assert all(call.group.ranks == tuple(sorted(kept)) for call in after.values())
    expect_right(after)
    for rank, call in after.items():
        if call.kind == "ALL_TO_ALL":
            pairs = dict(zip(ranks, before[rank].sends, strict=True))
            assert call.sends == tuple(pairs[other] for other in sorted(kept))


@given(listings(), st.data())
def test_as_delays_all_that_lacks_ranks_takes_its_time(
    listing: Listing, data: st.DataObject
) -> None:
    assert agree(listing) == []
    ranks = list(listing.calls)
    kept = data.draw(st.sets(st.sampled_from(ranks), min_size=1), label="kept")
    for rank in kept:
        (call,) = listing.calls[rank]
        became = shrunk(call, rank, kept, ShrinkAs.DELAY)
        whole = len(kept) == len(ranks)
        assert became is call if whole else became.kind == DELAY
        assert whole or (became.recorded_as, became.recorded_ns) == (call.kind, 5)


def test_one_rank_alone_and_messages_to_nobody_are_delays() -> None:
    pair = Group("", (0, 1))
    calls = [
        Call(node=1, kind="ALL_REDUCE", group=pair, place=0, tensors=(4,)),
        Call(node=2, kind=SEND, group=pair, place=0, tensors=(4,), peer=1),
    ]
    became = [shrunk(call, 0, {0, 2}, ShrinkAs.GROUP) for call in calls]
    assert [(call.kind, call.recorded_as) for call in became] == [
        (DELAY, "ALL_REDUCE"), (DELAY, "SEND"),
    ]  # fmt: skip


def test_a_message_brings_what_its_sender_has_for_the_receiver() -> None:
    send = Call(node=1, kind=SEND, group=Group("", (2, 5)), place=0, tensors=(30,), peer=5)
    receive = Call(node=1, kind=RECV, group=Group("", (2, 5)), place=0, tensors=(30,), peer=2)
    assert outputs(receive, 5)[0].tolist() == inputs(send, 2)[0].tolist()
    assert outputs(send, 2) == inputs(receive, 5) == []


@pytest.mark.parametrize(
    ("dtype", "exact"), [("bool", 1), ("int8", 127), ("bfloat16", 256), ("float16", 2048)]
)
@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_sums_are_exact_in_small_types(dtype: str, exact: int, ranks: int) -> None:
    group = Group("", tuple(range(ranks)))
    call = Call(node=1, kind="ALL_REDUCE", group=group, place=0, tensors=(50,), dtype=dtype)
    (summed,) = outputs(call, 0)
    assert summed.max() <= exact
    assert len(set(summed.tolist())) > 1 or (dtype, ranks) == ("bool", 64)
