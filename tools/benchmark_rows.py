"""What samples of a model and of its program say: medians, errors and their intervals, as cells.

An error is that of the medians of all samples. Samples of one process have more in common than
those of several: where the memory of either side came to lie. So its interval comes from samples
that are drawn again with their processes (a bootstrap of two stages).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from chakra_et.benchmark.certificate import OperatorTimes

LEAST_SHARE: Final = 0.01
MOST_ERROR: Final = 0.1
_DRAWS: Final = 2000
_LEVELS: Final = (0.025, 0.975)

Array: TypeAlias = np.ndarray
Interval: TypeAlias = tuple[float, float]


@dataclass
class Samples:
    """What one process measured of a model and of its program, in pairs that ran in turns."""

    operators: str
    """How many of the operators run."""
    long_share: float
    """The share of the recorded time that is in long operators."""
    own: dict[str, list[OperatorTimes]] = field(default_factory=dict)
    """Operators by side, for each recording."""
    values: dict[str, list[float]] = field(default_factory=dict)
    """Series by name: spans of a step in ns, and page faults of a step."""

    def add(self, name: str, *found: float) -> None:
        """Append to a series."""
        self.values.setdefault(name, []).extend(found)


Rounds: TypeAlias = Sequence[Samples]
"""The samples of several processes, as many of each."""
Cell: TypeAlias = Callable[[Rounds], str]


@dataclass(frozen=True)
class Error:
    """How much longer the one takes than the other, with an interval of 95 %."""

    share: float
    interval: Interval

    @classmethod
    def of(cls, model: Array, again: Array) -> Error:
        """Of two series, each with a row for each process."""
        return cls(float(np.median(again) / np.median(model) - 1), _interval(model, again))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:+.1%} ({low:+.1%} to {high:+.1%})"

    @property
    def too_large(self) -> bool:
        """Whether it is above the limit."""
        return abs(self.share) > MOST_ERROR

    @property
    def beyond_chance(self) -> bool:
        """Whether no value within its interval is small enough."""
        low, high = self.interval
        return low > MOST_ERROR or high < -MOST_ERROR


def _interval(model: Array, again: Array) -> Interval:
    """Pairs are drawn together: both sides have seen the same of their machine."""
    rounds, pairs = model.shape
    random = np.random.default_rng(0)
    which = random.integers(0, rounds, (_DRAWS, rounds, 1))
    place = random.integers(0, pairs, (_DRAWS, rounds, pairs))
    medians = (np.median(side[which, place], axis=(1, 2)) for side in (model, again))
    first, second = medians
    low, high = np.quantile(second / first - 1, _LEVELS).tolist()
    return low, high


def spread(name: str) -> Cell:
    """The median of a series of times, with the least and the most, in ms."""

    def cell(rounds: Rounds) -> str:
        found = _series(rounds, name) / 1e6
        return f"{np.median(found):.2f} ({found.min():.2f} to {found.max():.2f})"

    return cell


def times(name: str) -> Cell:
    """In how many processes a series was measured, and how often in each."""
    return lambda rounds: " x ".join(map(str, _series(rounds, name).shape))


def error(model: str, again: str) -> Cell:
    """The error of one series against another."""
    return lambda rounds: str(Error.of(_series(rounds, model), _series(rounds, again)))


def means(*names: str) -> Cell:
    """Means of series of counts."""
    return lambda rounds: ", ".join(f"{_series(rounds, name).mean():,.0f}" for name in names)


def operators(rounds: Rounds) -> str:
    """How many operators run."""
    return rounds[0].operators


def long_share(rounds: Rounds) -> str:
    """The share of the recorded time in long operators."""
    return f"{rounds[0].long_share:.0%}"


def operators_off(rounds: Rounds) -> str:
    """How many of the operators that matter are off, which, and for how many it is no chance."""
    errors = operator_errors(rounds)
    off = {name: found for name, found in errors.items() if found.too_large}
    sure = sum(found.beyond_chance for found in off.values())
    told = ", ".join(f"{name.removeprefix('aten::')} {found}" for name, found in off.items())
    return f"{len(off)} of {len(errors)}" + (f", {sure} beyond chance: {told}" if off else "")


def operator_errors(rounds: Rounds) -> dict[str, Error]:
    """The errors of own times by operator, of those above a share of the time, by name."""
    recorded = [times for each in rounds for times in each.own["recorded"]]
    least = LEAST_SHARE * statistics.median(sum(times.own_ns.values()) for times in recorded)
    found = {}
    for name in sorted({name for times in recorded for name in times.own_ns}):
        model, again = (
            np.array([[times.own_ns.get(name, 0) for times in each.own[side]] for each in rounds])
            for side in ("recorded", "run")
        )
        if np.median(model) >= max(least, 1):
            found[name] = Error.of(model, again)
    return found


def _series(rounds: Rounds, name: str) -> Array:
    return np.array([each.values[name] for each in rounds], np.float64)


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"
