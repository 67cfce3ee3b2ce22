"""Workload texts of ASTRA-sim 1.0 and SimAI: a policy, and what each layer computes and sends.

The first line names the policy, which says how passes overlap and which ranks communicate; the
second one counts the layers. A layer's line has twelve columns: name, a reserved number, then
cycles, collective and bytes of the forward pass, the input gradient and the weight gradient, then
the cycles of the update that follows a collective. Formats: astra-sim/astra-sim,
inputs/workload/ASTRA-sim-1.0/README.md; aliyun/SimAI, as AICB writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from chakra_et.definitions import CollectiveType
from chakra_et.workloads.text_lines import TextLines


class Policy(Enum):
    """What the first line says; the values are the words of the file."""

    MICRO = "MICRO"
    DATA = "DATA"
    MODEL = "MODEL"
    DATA_MODEL = "HYBRID_DATA_MODEL"
    MODEL_DATA = "HYBRID_MODEL_DATA"
    DLRM = "HYBRID_DLRM"
    DLRM_ENHANCED = "HYBRID_DLRM_ENHANCED"
    TRANSFORMER = "HYBRID_TRANSFORMER"
    TRANSFORMER_RECOMPUTED = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
    CUSTOMIZED = "HYBRID_CUSTOMIZED"
    INFERENCE = "DISTRIBUTED_INFERENCE"


class Dialect(Enum):
    """Whose text it is: that tells the groups, and what the size of an all-gather is."""

    ASTRA_SIM = "astra-sim"
    SIMAI = "simai"


class Pass(Enum):
    """The three passes over a layer, in the order of the columns."""

    FORWARD = "forward"
    INPUT_GRADIENT = "input gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True)
class Work:
    """One pass over one layer: `cycles` of computing, then a collective of `size_bytes`.

    `group` is the word that SimAI appends: EP, DP_EP, or nothing.
    """

    cycles: int
    collective: CollectiveType | None
    size_bytes: int
    group: str = ""


@dataclass(frozen=True)
class Layer:
    """A line: the passes, and `update_cycles`, a delay behind each of its collectives."""

    name: str
    passes: dict[Pass, Work]
    update_cycles: int
    policy: Policy | None = None


@dataclass(frozen=True)
class WorkloadText:
    """A file. `numbers` are those of the first line by name, without checkpoints.

    `model_ranks` is the size of a model-parallel group, 0 where that is not told. The forward pass
    of layers from the last of `checkpoints` is run again before the input gradient of each of
    `restarts`. `lines_left` counts lines behind the last layer.
    """

    path: Path
    policy: Policy
    dialect: Dialect
    layers: list[Layer]
    model_ranks: int = 0
    last_bottom_layer: int = 0
    checkpoints: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    lines_left: int = 0

    def again_before(self, layer: int) -> range:
        """The layers whose forward pass is run again before the input gradient of this one."""
        if layer not in self.restarts:
            return range(0)
        return range(max(c for c in self.checkpoints if c <= layer), layer)


_MODEL_GROUP: Final = "model_parallel_NPU_group"
_LAST_BOTTOM: Final = "DLRM_LAST_BOTTOM_LAYER"
_LISTS: Final = ("checkpoints", "checkpoint_initiates")
_OF_SIMAI: Final = frozenset({"ep", "pp", "vpp", "ga", "all_gpus", "pp_comm"})
_COLLECTIVES: Final = {
    "NONE": None,
    "ALLREDUCE": CollectiveType.ALL_REDUCE,
    "ALLGATHER": CollectiveType.ALL_GATHER,
    "REDUCESCATTER": CollectiveType.REDUCE_SCATTER,
    "ALLTOALL": CollectiveType.ALL_TO_ALL,
    "BROADCAST": CollectiveType.BROADCAST,
}
_GROUPS: Final = ("", "EP", "DP_EP")
_COLUMNS: Final = 12
_OF_LAYERS: Final = frozenset(Policy) - {
    Policy.TRANSFORMER,
    Policy.TRANSFORMER_RECOMPUTED,
    Policy.CUSTOMIZED,
}
"""What a layer of HYBRID_CUSTOMIZED can have as its own policy."""


def read_text(path: str | Path, dialect: Dialect | None = None) -> WorkloadText:
    """The workload in a file, which may be compressed; `dialect` None: told by the content.

    Raises FormatError, with the line, for what is no such text.
    """
    return _Reader(Path(path)).read(dialect)


class _Reader(TextLines):
    def read(self, dialect: Dialect | None) -> WorkloadText:
        if len(self.lines) < 2:
            self.fail(1, "expected a policy, the number of layers, and the layers")
        (first, head), (second, counted), *rest = self.lines
        policy = self._policy(first, head[0])
        numbers, lists = self._arguments(first, head[1:], policy)
        count = self._number(second, counted[0], "the number of layers")
        if len(rest) < count or not count:
            self.fail(
                second, f"{count} layers are announced, {len(rest)} lines follow",
                f"If the file is whole, write {len(rest)} there.",
            )  # fmt: skip
        layers = [self._layer(line, words, policy) for line, words in rest[:count]]
        text = WorkloadText(
            self.path, policy, dialect or _dialect(policy, numbers, lists[1], layers), layers,
            numbers.pop(_MODEL_GROUP, 0), numbers.pop(_LAST_BOTTOM, 0), *lists, numbers,
            len(rest) - count,
        )  # fmt: skip
        self._check(first, text)
        return text

    def _policy(self, line: int, word: str) -> Policy:
        try:
            return Policy(word)
        except ValueError:
            known = ", ".join(policy.value for policy in Policy)
            self.fail(line, f"no policy {word!r}", f"Known: {known}.")

    def _arguments(
        self, line: int, words: list[str], policy: Policy
    ) -> tuple[dict[str, int], tuple[list[int], list[int]]]:
        """Numbers by name, and the two lists of layers; a number alone is the policy's own."""
        own = _LAST_BOTTOM if policy in (Policy.DLRM, Policy.DLRM_ENHANCED) else _MODEL_GROUP
        numbers: dict[str, int] = {}
        lists: dict[str, list[int]] = {name: [] for name in _LISTS}
        at = 0
        while at < len(words):
            name = own if words[at].isdecimal() else words[at].rstrip(":")
            at += not words[at].isdecimal()
            value = self._number(line, words[at] if at < len(words) else "nothing", name)
            at += 1
            if name not in lists:
                numbers[name] = value
                continue
            if len(words) < at + value:
                self.fail(line, f"{name} has {len(words) - at} numbers, not {value}")
            lists[name] = [self._number(line, word, name) for word in words[at : at + value]]
            at += value
        return numbers, (lists[_LISTS[0]], lists[_LISTS[1]])

    def _layer(self, line: int, words: list[str], policy: Policy) -> Layer:
        own = policy is Policy.CUSTOMIZED
        if len(words) != _COLUMNS + own:
            self.fail(line, f"{len(words)} columns, not {_COLUMNS + own}")
        passes = {
            which: self._work(line, words[at : at + 3], which.value)
            for which, at in zip(Pass, (2, 5, 8), strict=True)
        }
        update = self._number(line, words[11], "the time of the update")
        policy_of_layer = self._policy(line, words[-1]) if own else None
        if policy_of_layer and policy_of_layer not in _OF_LAYERS:
            self.fail(line, f"{words[-1]} is not a policy of a layer")
        return Layer(words[0], passes, update, policy_of_layer)

    def _work(self, line: int, words: list[str], what: str) -> Work:
        collective, _, group = words[1].partition("_")
        if collective not in _COLLECTIVES or group not in _GROUPS:
            self.fail(
                line, f"no collective {words[1]!r}", f"It is one of {', '.join(_COLLECTIVES)}."
            )
        return Work(
            self._number(line, words[0], f"the time of the {what}"), _COLLECTIVES[collective],
            self._number(line, words[2], f"the size of the {what}"), group,
        )  # fmt: skip

    def _number(self, line: int, word: str, what: str) -> int:
        """A whole number from 0 on; AICB writes some as 8388608.0."""
        whole, _, fraction = word.partition(".")
        return self.number(line, word if fraction.strip("0") else whole, what)

    def _check(self, line: int, text: WorkloadText) -> None:
        for layer in [*text.checkpoints, *text.restarts, text.last_bottom_layer]:
            if layer >= len(text.layers):
                self.fail(line, f"no layer {layer}: there are {len(text.layers)}, from 0")
        if text.numbers.get("vpp", 0) > len(text.layers):
            self.fail(line, f"vpp is {text.numbers['vpp']}, more than there are layers")
        for layer in text.restarts:
            if not any(checkpoint <= layer for checkpoint in text.checkpoints):
                self.fail(line, f"no checkpoint before layer {layer}, where one is needed")


def _dialect(
    policy: Policy, numbers: dict[str, int], restarts: list[int], layers: list[Layer]
) -> Dialect:
    """SimAI's, where a word stands that only SimAI knows.

    AICB also writes the policy for recomputation where nothing is recomputed.
    """
    works = [work for layer in layers for work in layer.passes.values()]
    is_simai = (
        not _OF_SIMAI.isdisjoint(numbers)
        or (policy is Policy.TRANSFORMER_RECOMPUTED and not restarts)
        or any(work.group or work.collective is CollectiveType.BROADCAST for work in works)
    )
    return Dialect.SIMAI if is_simai else Dialect.ASTRA_SIM
