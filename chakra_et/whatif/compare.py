"""Before and after: one replay of the traces as they are, and one of them edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chakra_et.model import TraceSet
from chakra_et.replay import Replay, replay
from chakra_et.whatif.edit import Change, Edit


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
        before, after = _span(self.before), _span(self.after)
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


def ask(traces: TraceSet, edits: Sequence[Edit]) -> Answer:
    """Replay traces, apply edits in their order, and replay again."""
    edited, changes, network = traces, [], None
    for edit in edits:
        edited, change = edit.apply(edited)
        changes += [] if change is None else [change]
        network = edit if edit.network is not None else network
    after = replay(edited, network=None if network is None else network.network)
    return Answer(replay(traces), after, changes, None if network is None else network.text)


def _span(done: Replay) -> int:
    return max((figures.span_ns for figures in done.figures.values()), default=0)
