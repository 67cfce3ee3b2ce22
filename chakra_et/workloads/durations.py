"""How long operators take: from a provider, as far as one is given."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from chakra_et.errors import ChakraError, FormatError
from chakra_et.workloads.operators import Operator

Durations: TypeAlias = Callable[[Operator], "int | None"]
"""The duration of an operator in ns; None where the provider does not know it."""

_DEVICES: Final = files("chakra_et.workloads") / "devices.toml"


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Peak rates of a device: FLOP/s by type of element, bytes/s and bytes of its memory."""

    name: str
    source: str
    bytes_per_second: float
    memory_bytes: int
    flops_per_second: dict[str, float]


def devices() -> dict[str, Device]:
    """The devices that come with the package."""
    found = msgspec.toml.decode(_DEVICES.read_text(), type=dict[str, Device])
    return dict(sorted(found.items()))


def device(name: str) -> Device:
    """A device by its name. Raises ChakraError for one that is not in the table."""
    found = devices()
    if name not in found:
        raise ChakraError(f"no device {name!r}", remedy=f"It is one of {', '.join(found)}.")
    return found[name]


@dataclass(frozen=True)
class Roofline:
    """Each operator takes what its work or its bytes take at the device's peak.

    `efficiency` is the share of the peaks that is reached. Products run at the rate of their type,
    all else at that of fp32. No operator takes less than `least_ns`: a kernel has a fixed cost of
    about a microsecond, which is also the least that simulators can tell.
    """

    device: Device
    efficiency: float = 1.0
    least_ns: int = 1000

    def __call__(self, operator: Operator) -> int:
        rates = self.device.flops_per_second
        if operator.flops and operator.dtype not in rates:
            raise ChakraError(
                f"{self.device.name} has no rate for {operator.dtype}",
                remedy=f"It has one for {', '.join(rates)}.",
            )
        work = operator.flops / rates[operator.dtype] if operator.flops else 0.0
        work += operator.pointwise / rates["fp32"]
        moved = operator.moved_bytes / self.device.bytes_per_second
        return max(self.least_ns, round(max(work, moved) * 1e9 / self.efficiency))


@dataclass(frozen=True)
class Table:
    """Durations by the name of an operator, as in a CSV file of `operator,duration_ns`."""

    durations_ns: Mapping[str, int]

    def __call__(self, operator: Operator) -> int | None:
        return self.durations_ns.get(operator.name)

    @classmethod
    def read(cls, path: str | Path) -> Table:
        """The table in a file. Raises FormatError for a line that is none."""
        found: dict[str, int] = {}
        try:
            with Path(path).open(newline="") as file:
                for number, row in enumerate(csv.reader(file), 1):
                    if not row or (number == 1 and row[-1].strip() == "duration_ns"):
                        continue
                    found[row[0].strip()] = _duration(row, path, number)
        except OSError as error:
            raise ChakraError(
                f"cannot be read: {error.strerror or error}", path=path, remedy="Name a CSV file."
            ) from error
        return cls(found)


def _duration(row: list[str], path: str | Path, number: int) -> int:
    try:
        _, text = row
        duration = int(text)
        if duration < 0:
            raise ValueError(text)
    except ValueError:
        raise FormatError(
            f"not a duration: {','.join(row)!r}",
            path=path,
            place=f"line {number}",
            remedy="Write operator,duration_ns with whole ns, 0 or more.",
        ) from None
    return duration


def unknown(operator: Operator) -> None:
    """The provider that knows no duration."""
