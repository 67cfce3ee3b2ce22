"""The constants of an estimate: what was fitted to measured steps, and what is assumed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec

from chakra_et.errors import ChakraError

_DEFAULT: Final = files("chakra_et.estimate") / "constants.toml"
FITTED: Final = (
    "kernel_ns", "launch_ns", "message_ns", "jitter_ns", "score_passes", "head_efficiency",
)  # fmt: skip
"""What `fit` changes; all else is assumed."""


@dataclass(frozen=True)
class Constants:
    """What a roofline does not know. Times in ns, efficiencies as shares of the peak.

    - `matrix_efficiency`, `memory_efficiency`, `link_efficiency`: shares of the peaks of matrix
      products, memory and links of the network that are reached.
    - `attention_kernels`: how many kernels attention is; any other operator is one.
    - `score_passes`: how often attention moves its matrix of scores to or from memory; 0 for a
      fused kernel.
    - `head_efficiency`: in place of `matrix_efficiency`, for the products with the vocabulary.
    - `kernel_ns`: what a kernel takes on the device beyond the roofline.
    - `launch_ns`: what the host takes to launch a kernel. It runs ahead of the device.
    - `message_ns`: what the host takes for a message between stages, which it waits for.
    - `jitter_ns`: what the hosts lose at a collective, for each other member in the same node.
    """

    matrix_efficiency: float = 0.72
    memory_efficiency: float = 0.8
    link_efficiency: float = 0.8
    attention_kernels: int = 8
    score_passes: float = 6.0
    head_efficiency: float = 0.5
    kernel_ns: float = 20_000.0
    launch_ns: float = 70_000.0
    message_ns: float = 500_000.0
    jitter_ns: float = 10_000.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            lowest = 1e-9 if name.endswith("efficiency") else 0
            if not isfinite(value) or value < lowest:
                raise ChakraError(
                    f"{name} is {value}", remedy="Efficiencies are above 0, all else is not below."
                )

    @property
    def host(self) -> bool:
        """Whether there is a host that takes time to launch."""
        return self.launch_ns + self.message_ns + self.jitter_ns > 0

    def changed(self, names: tuple[str, ...], values: list[float]) -> Constants:
        """The same with other values of some."""
        told: dict[str, Any] = dict(zip(names, values, strict=True))
        return replace(self, **told)


ROOFLINE: Final = Constants(
    1.0, 1.0, 1.0, 1, 0.0, head_efficiency=1.0, kernel_ns=0, launch_ns=0, message_ns=0, jitter_ns=0
)
"""Peaks alone: the least that a step can take."""


def load_constants(path: str | Path | None = None) -> Constants:
    """The constants in a TOML file; those that come with the package without one.

    What a file leaves out is as in `Constants`. Raises ChakraError for what is no such file.
    """
    try:
        told = msgspec.toml.decode(
            _DEFAULT.read_text() if path is None else Path(path).read_text(), type=dict[str, float]
        )
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ChakraError(
            f"no constants: {error}", path=path, remedy="Write a TOML file of names and numbers."
        ) from error
    known = {field.name for field in fields(Constants)}
    unknown = sorted(set(told) - known)
    if unknown:
        raise ChakraError(
            f"no constant {unknown[0]!r}", path=path, remedy=f"Known: {', '.join(sorted(known))}."
        )
    return Constants(**told)  # type: ignore[arg-type]
