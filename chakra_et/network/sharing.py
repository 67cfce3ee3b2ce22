"""Transfers that share links: each gets as much as can be had without taking from a slower one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Link = TypeVar("Link", bound=Hashable)


def fair_rates(
    transfers: Sequence[Mapping[Link, float]], capacity: Mapping[Link, float]
) -> list[float]:
    """The max-min fair rate of each transfer.

    A transfer maps the links that it uses to how many times over it uses each; `capacity` is what a
    link carries, in the same unit as rates. Rates grow together until a link is full; those of its
    transfers stay, the others grow on (Bertsekas and Gallager, Data Networks, 6.5.2). A transfer
    without links has an unbounded rate.
    """
    rates = [float("inf")] * len(transfers)
    growing = {number for number, links in enumerate(transfers) if links}
    left = dict(capacity)
    while growing:
        load: dict[Link, float] = {}
        for number in growing:
            for link, times in transfers[number].items():
                load[link] = load.get(link, 0.0) + times
        full, rate = min(
            ((link, left[link] / times) for link, times in load.items()), key=lambda item: item[1]
        )
        done = {number for number in growing if full in transfers[number]}
        for number in done:
            rates[number] = rate
            for link, times in transfers[number].items():
                left[link] = max(left[link] - times * rate, 0.0)
        growing -= done
    return rates
