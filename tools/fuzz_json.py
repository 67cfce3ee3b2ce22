"""Damage to JSON that stays JSON, or nearly: values, keys and records of unexpected kinds."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any, Final

RAW: Final[tuple[str, ...]] = (
    "9" * 5000, "-" + "9" * 30, "1e999", "-0", "0.1e-300", "NaN", "Infinity", "None",
    '"\\ud800"', '"\\udc80\\u0000"', "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300,
    "", ",", "9007199254740993", "1.7976931348623157e308",
)  # fmt: skip
"""What stands in place of a value; not all of it is JSON."""
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 1.5, -7, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
    2**64, -(2**63), -(2**63) - 1, "", "7", "-1", "0x10", "\x1b[31m\n\r\t\x00",
    "é\u2028\U0001f600", "a" * 5000, [], {}, [[]], [None], {"": {}}, [1, "a", None, {}], "kernel",
    "X", "M", "process_name", [[1], [2, 3]],
)  # fmt: skip
_MARK: Final = "@raw{}@"


def mutate_json(rng: random.Random, document: Any) -> bytes:
    """A document with some places changed."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        places = _places(document)
        if not places:
            break
        rng.choice(_CHANGES)(rng, *rng.choice(places), places)
    text = json.dumps(document, indent=rng.choice((None, None, 2)), ensure_ascii=rng.random() < 0.5)
    for number, raw in enumerate(RAW):
        text = text.replace(f'"{_MARK.format(number)}"', raw)
    return text.encode("utf-8", "surrogatepass")


Place = tuple[Any, Any]
"""A list or dictionary, and an index or key of it."""


def _places(document: Any) -> list[Place]:
    found: list[Place] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in items:
            found.append((holder, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


def _value(rng: random.Random) -> Any:
    # A value of its own: it may be changed in its turn.
    return (
        deepcopy(rng.choice(VALUES))
        if rng.random() < 0.8
        else _MARK.format(rng.randrange(len(RAW)))
    )


def _replace(rng: random.Random, holder: Any, key: Any, _: list[Place]) -> None:
    holder[key] = _value(rng)


def _remove(_rng: random.Random, holder: Any, key: Any, _: list[Place]) -> None:
    del holder[key]


def _take_from_elsewhere(rng: random.Random, holder: Any, key: Any, places: list[Place]) -> None:
    other, place = rng.choice(places)
    holder[key] = json.loads(json.dumps(other[place]))


def _duplicate(rng: random.Random, holder: Any, key: Any, _: list[Place]) -> None:
    if isinstance(holder, list):
        holder[key:key] = [json.loads(json.dumps(holder[key]))] * rng.choice((1, 1, 5))


def _shuffle(rng: random.Random, holder: Any, _key: Any, _: list[Place]) -> None:
    if isinstance(holder, list):
        rng.shuffle(holder)
    else:
        items = list(holder.items())
        rng.shuffle(items)
        holder.clear()
        holder.update(items)


def _rename(rng: random.Random, holder: Any, key: Any, places: list[Place]) -> None:
    if isinstance(holder, dict):
        names = [name for _, name in places if isinstance(name, str)]
        holder[rng.choice([*names, "", "unknown", "a\x1b\n"])] = holder.pop(key)


def _nudge(rng: random.Random, holder: Any, key: Any, _: list[Place]) -> None:
    """Numbers and texts that are nearly right: other ids, times, categories."""
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        holder[key] = _value(rng)
    elif isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        holder[key] = (
            value[:at] + rng.choice(("", "0", '"', "\\", "::", "\ud83d")) + value[at + 1 :]
        )
    else:
        holder[key] = rng.choice((value + 1, value - 1, -value, value * 1000, str(value)))


_CHANGES: Final = (
    _replace, _replace, _replace, _remove, _take_from_elsewhere, _duplicate, _shuffle, _rename,
    _nudge, _nudge,
)  # fmt: skip
