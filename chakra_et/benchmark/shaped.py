"""Values that decide how large a result is: masks, lengths of sequences, numbers of repeats.

Here what was returned tells what must have been given.
"""

from __future__ import annotations

from collections.abc import Iterable

from chakra_et.benchmark.arguments import View
from chakra_et.benchmark.fill import RETURNED, Demand, Fill, Find, Given
from chakra_et.benchmark.views import Ref, refs

_FLAGS = ("bool", "uint8")


def packed(given: Given, views: list[View]) -> Iterable[Demand]:
    """Lengths of the sequences of a padded batch: the elements that were packed, and the steps."""
    packs, steps = (_returned(given, views, place) for place in (0, 1))
    if packs and steps:
        for view in refs(given.get("lengths")):
            yield view, Fill("lengths", steps.shape[0], packs.shape[0])


def repeats(given: Given, views: list[View]) -> Iterable[Demand]:
    """How often each element is repeated: as many as were returned, together."""
    result, dim = _returned(given, views), given.get("dim")
    if result:
        along = dim if isinstance(dim, int) and -len(result.shape) <= dim < len(result.shape) else 0
        for view in refs(given.get("repeats")):
            yield view, Fill("lengths", 0, result.shape[along])


def chosen(name: str) -> Find:
    """Elements that count: as many as were returned."""

    def demand(given: Given, views: list[View]) -> Iterable[Demand]:
        if result := _returned(given, views):
            yield from _some(given.get(name), result.shape[0], views)

    return demand


def mask(given: Given, views: list[View]) -> Iterable[Demand]:
    """A mask that is the only index: as many elements as were returned, or put."""
    indices = given.get("indices")
    there = [
        (place, item)
        for place, item in enumerate(indices if isinstance(indices, list) else ())
        if item is not None
    ]
    flags = _view(there[0][1], views) if len(there) == 1 else None
    table, puts = _view(given.get("self"), views), "values" in given
    found = _view(given["values"], views) if puts else _returned(given, views)
    if flags is None or flags.dtype not in _FLAGS or table is None or found is None:
        return
    place = there[0][0]
    of_each = len(found.shape) == len(table.shape) - len(flags.shape) + 1 > place
    if of_each and not (puts and found.shape[place] == 1):  # one value is for all that are chosen
        yield from _some(there[0][1], found.shape[place], views)


def _some(value: object, count: int, views: list[View]) -> Iterable[Demand]:
    """So many elements of a tensor that has its memory for itself."""
    for view in refs(value):
        if views[view].is_dense:
            yield view, Fill("some", count)


def _view(value: object, views: list[View]) -> View | None:
    return views[value.view] if isinstance(value, Ref) else None


def _returned(given: Given, views: list[View], place: int = 0) -> View | None:
    """An output that has a dimension at least."""
    outputs = given[RETURNED]
    found = _view(outputs[place], views) if place < len(outputs) else None
    return found if found and found.shape else None
