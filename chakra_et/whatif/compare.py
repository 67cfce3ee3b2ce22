"""Before and after: one replay of the traces as they are, and one of them edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.replay import Processors, Replay, TransferModel, replay
from chakra_et.whatif.edit import Change, Edit
from chakra_et.whatif.plan_edits import change_plan


@dataclass(frozen=True)
class Answer:
    """Both replays, and what the edits changed."""

    before: Replay
    after: Replay
    changes: list[Change]
    network: str | None

    @property
    def span_change(self) -> float:
        """The share by which the longest rank's span changes."""
        before, after = span_of(self.before), span_of(self.after)
        return after / before - 1 if before else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "span_change": self.span_change,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "changes": [change.as_dict() for change in self.changes],
            "network": self.network,
        }


@dataclass(frozen=True)
class Edited:
    """Traces after edits: with what changed, and the network that transfers go over, if any.

    Where ranks share `processors`, durations are those of work that has one to itself.
    """

    traces: TraceSet
    changes: list[Change]
    network: TransferModel | None
    network_text: str | None
    processors: Processors | None = None

    def replayed(self) -> Replay:
        """How they run."""
        return replay(self.traces, network=self.network, processors=self.processors)


def edit(traces: TraceSet, edits: Sequence[Edit]) -> Edited:
    """Apply edits in their order. Neighbours that change a model's plan are made at once."""
    changes: list[Change] = []
    over: Edit | None = None
    traces, processors = _alone(traces, edits)
    for of_plan, group in groupby(edits, key=lambda each: each.plan is not None):
        some = list(group)
        if of_plan:
            traces, done = change_plan(traces, [e.plan for e in some if e.plan is not None])
            changes += done
            continue
        for each in some:
            traces, told = each.apply(traces)
            changes += [] if told is None else [told]
            over = each if each.network is not None else over
    if over is None:
        return Edited(traces, changes, None, None, processors)
    return Edited(traces, changes, over.network, over.text, processors)


def _alone(traces: TraceSet, edits: Sequence[Edit]) -> tuple[TraceSet, Processors | None]:
    """What is edited where ranks share processors: a run in which nobody takes time from others."""
    for each in reversed(edits):
        if each.processors is not None:
            from chakra_et.whatif.processors import work_alone

            return work_alone(traces, each, edits), each.processors[1]
    return traces, None


def ask(traces: TraceSet, edits: Sequence[Edit], before: Sequence[Edit] = ()) -> Answer:
    """Replay traces, apply edits in their order, and replay again.

    What is compared with are the traces as they are, or with the edits `before`.
    """
    start, edited = edit(traces, before), edit(traces, edits)
    first = start.replayed()
    try:
        after = edited.replayed()
    except ChakraError as error:
        raise ChakraError(
            f"{' '.join(each.text for each in edits)}: after that {error.problem}",
            remedy="The run goes on without it, and cannot with it: make another edit.",
        ) from error
    return Answer(first, after, edited.changes, edited.network_text)


def span_of(done: Replay) -> int:
    """The span of the rank that takes longest, in ns."""
    return max((figures.span_ns for figures in done.figures.values()), default=0)
