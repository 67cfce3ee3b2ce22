"""One rank's part: its calls in order, timed, after a first pass with known values."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
import torch.distributed as dist

from chakra_et.benchmark.comms import values
from chakra_et.benchmark.comms.buffers import Buffers
from chakra_et.benchmark.comms.call import DELAY, SEND, Call, Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.collectives import begin
from chakra_et.benchmark.comms.world import Seat, make_groups
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError

_GLOO: Final = frozenset(
    {"float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool",
     "complex64", "complex128"}
)  # fmt: skip
"""Types that gloo has; of others it moves as many bytes."""
_WRONG_SHOWN: Final = 20
_AWAKE_NS: Final = 200_000


@dataclass
class _Pending:
    """A call that is under way."""

    call: Call
    works: list[Any]
    given: list[Any]
    got: list[Any]
    began_ns: int
    ended_ns: list[int] = field(default_factory=list)


def run_plan(seat: Seat, plan: Plan, settings: Settings) -> RankOutcome:
    """Run the calls of a rank; a first pass, which is not timed, checks what they bring.

    Raises ChakraError where a call fails or does not end in time, with the rank and the call.
    """
    return _Rank(seat, plan, settings).run()


class _Rank:
    def __init__(self, seat: Seat, plan: Plan, settings: Settings) -> None:
        self.seat = seat
        self.plan = plan
        self.settings = settings
        self.calls = [_fitting(call, seat.backend) for call in plan.calls]
        self.buffers = Buffers(seat.device)
        self.process = {rank: process for process, rank in enumerate(plan.members)}
        self.pending: dict[int, _Pending] = {}
        self.durations: list[int] = []
        self.checks = False
        self.wrong: list[str] = []
        self.wrong_count = self.checked = 0

    def run(self) -> RankOutcome:
        self.groups = make_groups(self.seat, self.plan.groups, self.plan.members)
        self.checks = True
        self._iterate()
        self.checks = False
        self.buffers.blank()
        for _ in range(self.settings.warmup):
            self._iterate()
        spans, durations = [], []
        for _ in range(self.settings.iterations):
            spans.append(self._iterate())
            durations.append(self.durations)
        pairs = zip(self.calls, self.plan.calls, strict=True)
        return RankOutcome(
            rank=self.plan.rank,
            backend=self.seat.backend,
            durations_ns=durations,
            spans_ns=spans,
            checked=self.checked,
            wrong=self.wrong,
            wrong_count=self.wrong_count,
            as_bytes=sum(mine.dtype != theirs.dtype for mine, theirs in pairs),
            buffer_bytes=self.buffers.most_bytes,
        )

    def _iterate(self) -> int:
        """All calls once; the time in ns from when all ranks were ready to the end of the last."""
        self._guarded("the barrier before an iteration", dist.barrier)
        self.durations = [0] * len(self.calls)
        began_ns = time.perf_counter_ns()
        for place, call in enumerate(self.calls):
            for other in call.after:
                # What is sent is out of hand: to wait for its receiver may be to wait forever.
                if self.calls[other].kind != SEND:
                    self._finish(other)
            self._keep_gap(call, began_ns)
            if call.kind == DELAY:
                self._delay(place, call)
                continue
            self.pending[place] = self._begin(call)
            alone = self.settings.one_by_one or call.is_async is False
            if alone and not call.is_message:
                self._finish(place)
        for place in list(self.pending):
            self._finish(place)
        return time.perf_counter_ns() - began_ns

    def _keep_gap(self, call: Call, began_ns: int) -> None:
        if self.settings.gaps and call.start_ns is not None:
            _sleep_until(began_ns + call.start_ns)

    def _delay(self, place: int, call: Call) -> None:
        began_ns = time.perf_counter_ns()
        _sleep_until(began_ns + (call.recorded_ns or 0))
        self.durations[place] = time.perf_counter_ns() - began_ns

    def _begin(self, call: Call) -> _Pending:
        given, got = self._tensors(call)
        if self.checks:
            _fill(given, values.inputs(call, self.plan.rank))
        group, peer = dist.group.WORLD, 0
        if call.is_message:
            peer = self.process[int(call.peer or 0)]
        else:
            group = self.groups[call.group]
        pending = _Pending(call, [], given, got, time.perf_counter_ns())
        text = call.text(self.plan.rank)
        pending.works = self._guarded(text, partial(begin, group, call, peer, given, got))
        for work in pending.works:
            _when_done(work, pending.ended_ns)
        return pending

    def _finish(self, place: int) -> None:
        """Wait for a call, if it is under way."""
        pending = self.pending.pop(place, None)
        if pending is None:
            return
        text = pending.call.text(self.plan.rank)
        for work in pending.works:
            self._guarded(text, work.wait)
        if len(pending.ended_ns) < len(pending.works):
            pending.ended_ns.append(time.perf_counter_ns())
        self.durations[place] = max(pending.ended_ns) - pending.began_ns
        if self.checks:
            self._check(pending)
        own = {t.untyped_storage().data_ptr(): t for t in [*pending.given, *pending.got]}
        self.buffers.give_back(list(own.values()))

    def _tensors(self, call: Call) -> tuple[list[Any], list[Any]]:
        """Inputs and outputs of a call; where both share memory, views of it."""
        rank, take = self.plan.rank, self.buffers.take
        place = call.group.ranks.index(rank) if rank in call.group.ranks else 0
        if call.kind == CollectiveType.ALL_GATHER.name and call.takes:
            got = [take(sum(call.takes), call.dtype)]
            return [got[0].split(list(call.takes))[place]], got
        if values.is_reduce_scatter(call) and call.sends:
            given = [take(sum(call.sends), call.dtype)]
            return given, [given[0].split(list(call.sends))[place]]
        given = [take(size, call.dtype) for size in values.input_sizes(call, rank)]
        if values.in_place(call):
            return given, given
        return given, [take(size, call.dtype) for size in values.output_sizes(call, rank)]

    def _check(self, pending: _Pending) -> None:
        """Compare what a call brought with what it must be."""
        expected = values.outputs(pending.call, self.plan.rank)
        self.checked += bool(expected)
        for tensor, right in zip(pending.got, expected, strict=False):
            wanted = torch.from_numpy(right).to(tensor.dtype).to(tensor.device)
            differ = int((tensor != wanted).sum())
            if differ:
                self.wrong_count += 1
                text = f"{pending.call.text(self.plan.rank)}: {differ} of {len(right)} elements"
                self.wrong += [f"{text} differ"] * (len(self.wrong) < _WRONG_SHOWN)
                break

    def _guarded(self, what: str, do: Callable[[], Any]) -> Any:
        """Run what may wait for other ranks. Raises ChakraError that says what was waited for."""
        try:
            return do()
        except (RuntimeError, ValueError) as error:
            raise failed(what, error, self.seat.timeout_s) from None


def _sleep_until(end_ns: int) -> None:
    """Sleep, and wait awake for the last part: systems sleep up to 0.1 ms longer than asked."""
    time.sleep(max(end_ns - time.perf_counter_ns() - _AWAKE_NS, 0) / 1e9)
    while time.perf_counter_ns() < end_ns:
        pass


def failed(what: str, error: Exception, timeout_s: float) -> ChakraError:
    """An error about a call that failed, or did not end in time."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    lower = reason.lower()
    if "timed out" in lower or "timeout" in lower:
        return ChakraError(
            f"{what} did not end within {timeout_s:g} s",
            remedy="A rank has not made this call: it hangs, has ended, or needs more time "
            "(--timeout).",
        )
    if any(word in lower for word in ("connection closed", "reset by peer", "broken pipe")):
        return LostRankError(f"{what}: another rank has ended")
    return ChakraError(f"{what}: {reason}")


class LostRankError(ChakraError):
    """Another rank has ended: it says why, not this one."""

    follows = True


def _fitting(call: Call, backend: str) -> Call:
    """A call in a type that the backend has: itself, or as many bytes."""
    return call.as_bytes() if backend == "gloo" and call.dtype not in _GLOO else call


def _fill(tensors: list[Any], given: list[values.Values]) -> None:
    for tensor, wanted in zip(tensors, given, strict=False):
        tensor.copy_(torch.from_numpy(wanted))


def _when_done(work: Any, ended_ns: list[int]) -> None:
    """Note when a work ends, where it can tell."""
    try:
        future = work.get_future()
    except RuntimeError:
        return
    future.add_done_callback(lambda _: ended_ns.append(time.perf_counter_ns()))
