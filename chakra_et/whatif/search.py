"""Search: which edits make a run shorter, with the replay as the judge, in so many replays.

One choice after the other is tried in all of its values, with what is best of the others so far,
and over again until nothing gets better. That finds the best of choices that do not depend on each
other, and of others a combination that no single change betters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.whatif.compare import Answer, ask, edit, span_of
from chakra_et.whatif.edit import Edit
from chakra_et.whatif.edits import parse_edit

USUAL: Final = (
    ("bucket=256KiB", "bucket=1MiB", "bucket=4MiB", "bucket=25MiB", "bucket=100MiB", "bucket=all"),
    ("schedule=1f1b", "schedule=gpipe", "schedule=zero-bubble", "schedule=interleaved:2"),
    ("recompute=none", "recompute=selective"),
    ("sequence_parallel=on", "sequence_parallel=off"),
    ("zero=0", "zero=1"),
    (
        "order=tp-cp-ep-dp-pp",
        "order=tp-cp-ep-pp-dp",
        "order=dp-tp-cp-ep-pp",
        "order=pp-dp-tp-cp-ep",
    ),
)
"""Choices that leave the work of a step as it is, but for what is computed again."""


@dataclass(frozen=True)
class Trial:
    """One replay: with which edits, and how long it took; or why they could not be made."""

    edits: tuple[str, ...]
    span_ns: int | None
    refused: str = ""


@dataclass
class Found:
    """What a search found: the edits that are best, and all that it tried, in order.

    `without_ns` has for each of these edits the span with the others alone, as far as the budget
    went.
    """

    edits: tuple[str, ...]
    answer: Answer
    without_ns: dict[str, int] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    complete: bool = True

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `complete` is false where the budget ended the search."""
        return {
            "edits": list(self.edits),
            "without_ns": self.without_ns,
            "complete": self.complete,
            "trials": [dict(trial.__dict__) for trial in self.trials],
            **self.answer.as_dict(),
        }


class _SpentError(Exception):
    """The budget is used up."""


def parse_choice(text: str) -> tuple[str, ...]:
    """The edits that `KEY=A|B|C` offers. Raises ChakraError for one that is not understood."""
    key, found, values = text.rpartition("=")
    edits = tuple(f"{key}={value}" for value in values.split("|"))
    for each in edits if found else (text,):
        parse_edit(each)
    return edits


def search(
    traces: TraceSet,
    fixed: Sequence[Edit],
    choices: Sequence[Sequence[str]] = USUAL,
    budget: int = 50,
    step: Callable[[int, int], None] = lambda _done, _of: None,
) -> Found:
    """The edits of each of some choices (or none of it) with which the run is shortest.

    `fixed` edits are made always and first. At most `budget` replays are done, the first of them
    without any choice; of equal spans the first one found is kept, so that what helps nobody is not
    in the outcome.
    """
    judge = _Judge(traces, fixed, max(budget, 1), step)
    best: list[str | None] = [None] * len(choices)
    without: dict[str, int] = {}
    span = judge.span(best)
    better, complete = True, True
    try:
        while better and span is not None:
            better = False
            for place, choice in enumerate(choices):
                for each in (None, *choice):
                    tried = [*best[:place], each, *best[place + 1 :]]
                    found = judge.span(tried)
                    if found is not None and found < span:
                        best, span, better = tried, found, True
        for place, text in enumerate(best):
            if text is not None:
                alone = judge.span([*best[:place], None, *best[place + 1 :]])
                without |= {} if alone is None else {text: alone}
    except _SpentError:
        complete = False
    texts = tuple(text for text in best if text is not None)
    answer = ask(traces, [*fixed, *map(parse_edit, texts)], before=fixed)
    return Found(texts, answer, without, judge.trials, complete)


class _Judge:
    """Replays runs with edits, each once, and counts."""

    def __init__(
        self, traces: TraceSet, fixed: Sequence[Edit], budget: int, step: Callable[[int, int], None]
    ) -> None:
        self._traces = traces
        self._fixed = list(fixed)
        self._budget = budget
        self._step = step
        self._known: dict[tuple[str, ...], int | None] = {}
        self.trials: list[Trial] = []

    def span(self, chosen: Sequence[str | None]) -> int | None:
        """The span with some edits; None where they cannot be made. Raises _SpentError."""
        texts = tuple(text for text in chosen if text is not None)
        if texts not in self._known:
            if len(self.trials) >= self._budget:
                raise _SpentError
            self._step(len(self.trials), self._budget)
            self._known[texts] = self._try(texts)
        return self._known[texts]

    def _try(self, texts: tuple[str, ...]) -> int | None:
        try:
            edits = [*self._fixed, *map(parse_edit, texts)]
            span = span_of(edit(self._traces, edits).replayed())
        except ChakraError as error:
            if not texts:
                raise
            self.trials.append(Trial(texts, None, error.problem))
            return None
        self.trials.append(Trial(texts, span))
        return span
