"""A timeline as lines of characters: how busy each track is, what the critical path passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.export.recorded import CATEGORIES
from chakra_et.export.scene import Scene
from chakra_et.export.timeline import PATH
from chakra_et.graph.intervals import covered_within
from chakra_et.shown import shown

_LEVELS: Final = " ▁▂▃▄▅▆▇█"
LETTERS: Final = {"host": "h", "compute": "k", "communication": "c", "memory": "m"}
"""What a piece of the critical path is: host, kernels, communication, memory."""
_ANNOTATION: Final = CATEGORIES.index("annotation")
_LEAST: Final = 4
"""Shorter names than this are not written."""


@dataclass(frozen=True)
class Line:
    """One line of a sketch: a character for each column of time, and its category ("" for none)."""

    process: str
    label: str
    text: str
    categories: list[str]


@dataclass(frozen=True)
class Sketch:
    """Lines of one width, from `begin` to `end`, in ns of the trace's clock."""

    lines: list[Line]
    begin: int
    end: int


def sketch(scene: Scene, width: int, begin: int | None = None, end: int | None = None) -> Sketch:
    """Each track as a line, of a window if one is given.

    The height of a character is the share of its time in which the track is busy (an annotation
    alone keeps none busy), its category that of most of this. Above threads stand the names of
    annotations as far as there is room.
    """
    slices = scene.slices
    first = int(slices.start.min()) if len(slices) else 0
    last = int(slices.end.max()) if len(slices) else 0
    begin, end = first if begin is None else begin, last if end is None else end
    borders = np.linspace(begin, max(end, begin + 1), width + 1).astype(np.int64)
    lines: list[Line] = []
    for number, track in enumerate(slices.tracks):
        mine = (slices.track == number) & (slices.start < end) & (slices.end > begin)
        work = np.flatnonzero(mine & (slices.category != _ANNOTATION))
        if track.process == PATH:
            lines.append(_path_line(scene, work, borders, track.name))
            continue
        names = np.flatnonzero(mine & (slices.category == _ANNOTATION))
        written = _named(scene, names, borders)
        if written.strip():
            lines.append(Line(track.process, "", written, [""] * width))
        if len(work):
            text, categories = _busy(scene, work, borders)
            lines.append(Line(track.process, track.name, text, categories))
    return Sketch(lines, begin, end)


def _shares(scene: Scene, chosen: Rows, borders: Rows) -> npt.NDArray[np.float64]:
    """For each category the share of each column that the slices of it cover."""
    slices, widths = scene.slices, np.maximum(np.diff(borders), 1)
    shares = np.zeros((len(slices.categories), len(widths)))
    for category in np.unique(slices.category[chosen]).tolist():
        of = chosen[slices.category[chosen] == category]
        took = covered_within(slices.start[of], slices.end[of], borders[:-1], borders[1:])
        shares[category] = took / widths
    return shares


def _busy(scene: Scene, chosen: Rows, borders: Rows) -> tuple[str, list[str]]:
    shares = _shares(scene, chosen, borders)
    slices, widths = scene.slices, np.maximum(np.diff(borders), 1)
    every = covered_within(slices.start[chosen], slices.end[chosen], borders[:-1], borders[1:])
    # What took any time at all is seen.
    level = np.ceil(np.minimum(every / widths, 1) * (len(_LEVELS) - 1)).astype(np.int64)
    most = shares.argmax(axis=0)
    text = "".join(_LEVELS[i] for i in level.tolist())
    named = [slices.categories[c] if i else "" for c, i in zip(most.tolist(), level, strict=True)]
    return text, named


def _path_line(scene: Scene, chosen: Rows, borders: Rows, label: str) -> Line:
    shares = _shares(scene, chosen, borders)
    most, there = shares.argmax(axis=0).tolist(), (shares.max(axis=0) > 0).tolist()
    named = [scene.slices.categories[c] if t else "" for c, t in zip(most, there, strict=True)]
    return Line(PATH, label, "".join(LETTERS.get(name, "·") for name in named), named)


def _named(scene: Scene, chosen: Rows, borders: Rows) -> str:
    """Names of annotations where they begin; an inner one where the outer one's name is over."""
    slices, width = scene.slices, len(borders) - 1
    text = [" "] * width
    written = 0
    for place in chosen.tolist():
        column = int(np.searchsorted(borders, slices.start[place], "right")) - 1
        until = int(np.searchsorted(borders, slices.end[place], "left"))
        name = shown(slices.names[int(slices.name[place])])
        column = max(column, 0, written)
        room = min(until, width) - column
        if room < min(len(name), _LEAST) or room <= 0:
            continue
        short = name if len(name) <= room else f"{name[: room - 1]}…"
        text[column : column + len(short)] = list(short)
        written = column + len(short) + 1
    return "".join(text)
