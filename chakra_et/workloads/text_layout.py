"""Where the ranks of a workload text lie, and which of them each collective is for.

In ASTRA-sim 1.0 a policy chooses dimensions of the network: a hybrid one splits them into first
and rest, of which one is model-parallel and the other data-parallel. SimAI knows Megatron's groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chakra_et.build import Workload
from chakra_et.errors import ChakraError
from chakra_et.workloads.texts import Dialect, Layer, Pass, Policy, Work, WorkloadText

_TRANSFORMERS: Final = (Policy.TRANSFORMER, Policy.TRANSFORMER_RECOMPUTED)
_NAMES: Final = {
    Policy.DATA_MODEL: ("model", "data"),
    Policy.MODEL_DATA: ("data", "model"),
    Policy.TRANSFORMER: ("model", "data"),
    Policy.TRANSFORMER_RECOMPUTED: ("model", "data"),
    Policy.CUSTOMIZED: ("first", "rest"),
}
"""What the first dimensions of the network are for, and the rest."""
_ALL: Final = "all"
_MOST_RANKS: Final = 1 << 20
_RANKS: Final = "Give --ranks N, or the network with --dims AxB."

_NO_DIMS: Final = "Give --ranks N, or --dialect astra-sim if it is none of SimAI's."


@dataclass(frozen=True)
class Layout:
    """Ranks on a grid, and families of groups.

    `involved` has the dimensions of the network that a family spans, where they were given, none of
    them is cut in two, and they are not all.
    """

    text: WorkloadText
    workload: Workload
    involved: Mapping[str, tuple[bool, ...]]

    def family(self, layer: Layer, which: Pass) -> str:
        """The groups that the collective of a pass is for."""
        data = which is Pass.WEIGHT_GRADIENT
        if "tp" in self.workload.families:
            return self._of_simai(layer.passes[which], data)
        policy = layer.policy or self.text.policy
        if policy not in _NAMES:
            return _ALL
        is_first = data == (policy is Policy.MODEL_DATA)
        return _NAMES[self.text.policy][not is_first]

    def _of_simai(self, work: Work, data: bool) -> str:
        if work.group == "DP_EP":
            return "edp" if "edp" in self.workload.families else "dp"
        # Without tensor parallelism, what is gathered in a pass are parameters (ZeRO-3).
        data = data or self.workload.grid.axes["tp"] == 1
        return "ep" if work.group == "EP" else "dp" if data else "tp"

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return self.workload.grid.axes.get("pp", 1)


def lay_out(
    text: WorkloadText,
    ranks: int | None = None,
    dims: Sequence[int] = (),
    facts: Mapping[str, str] | None = None,
) -> Layout:
    """Place `ranks` ranks, or those of a network with `dims` ranks in each dimension.

    Raises ChakraError where the text and these do not fit together.
    """
    count = _count(text, ranks, dims)
    if text.policy in _TRANSFORMERS and not text.model_ranks:
        raise _unfit(text, "the first line has no model_parallel_NPU_group", "Add it.")
    if text.policy in _TRANSFORMERS and text.dialect is Dialect.SIMAI:
        if len(dims) > 1:
            raise _unfit(text, "SimAI's texts know groups, no dimensions", _NO_DIMS)
        return _megatron(text, count, facts)
    sizes = list(dims or [count])
    if text.policy in _TRANSFORMERS:
        boundary = _split(text, sizes)
    elif text.policy in _NAMES:
        boundary = 1
        if len(sizes) < 2:
            word = text.policy.value
            raise _unfit(text, f"{word} needs two dimensions", "Give the network: --dims 4x2.")
    else:
        boundary = 0
    return _on_network(text, sizes, boundary, facts, told=len(dims) > 1 and sizes == list(dims))


def _count(text: WorkloadText, ranks: int | None, dims: Sequence[int]) -> int:
    if dims and (min(dims) < 1 or (ranks is not None and ranks != math.prod(dims))):
        told = "x".join(map(str, dims))
        raise _unfit(text, f"a network of {told} has not {ranks or 'a number of'} ranks", _RANKS)
    count = math.prod(dims) if dims else ranks or text.numbers.get("all_gpus", 0)
    if count < 1:
        raise _unfit(text, "the text does not state the number of ranks", _RANKS)
    if count > _MOST_RANKS:
        raise _unfit(text, f"{count} ranks, more than {_MOST_RANKS}", _RANKS)
    return count


def _split(text: WorkloadText, sizes: list[int]) -> int:
    """How many dimensions make up a model-parallel group; one is cut in two where need be."""
    left = text.model_ranks
    for at, size in enumerate(sizes):
        if left % size == 0:
            left //= size
        elif size % left == 0:
            sizes[at : at + 1] = [left, size // left]
            left = 1
        else:
            break
        if left == 1:
            if len(sizes) == at + 1:
                sizes.append(1)
            return at + 1
    told = "x".join(map(str, sizes))
    raise _unfit(
        text, f"groups of {text.model_ranks} ranks do not fit into {told}", "Give other ranks."
    )


def _on_network(
    text: WorkloadText,
    sizes: list[int],
    boundary: int,
    facts: Mapping[str, str] | None,
    *,
    told: bool,
) -> Layout:
    """Axes are the dimensions; families are the first, the rest, and all of them."""
    places = range(len(sizes))
    parts: dict[str, Sequence[int]] = {_ALL: places}
    if boundary:
        first, rest = _NAMES[text.policy]
        parts = {first: places[:boundary], rest: places[boundary:], _ALL: places}
    names = [f"dim{place}" for place in places]
    for part, inside in parts.items():
        if len(inside) == 1:
            names[inside[0]] = part
    workload = Workload(dict(zip(names, sizes, strict=True)), facts=facts)
    for part, inside in parts.items():
        if len(inside) != 1 and (part != _ALL or not boundary or text.policy is Policy.CUSTOMIZED):
            workload.groups(part, axes=[names[place] for place in inside])
    chosen = {p: tuple(place in inside for place in places) for p, inside in parts.items()}
    return Layout(text, workload, {p: c for p, c in chosen.items() if told and not all(c)})


def _megatron(text: WorkloadText, ranks: int, facts: Mapping[str, str] | None) -> Layout:
    """Ranks in Megatron's order: tp, ep and what is left of dp, pp."""
    tp, ep, pp = text.model_ranks, text.numbers.get("ep") or 1, text.numbers.get("pp") or 1
    if ranks % (tp * ep * pp):
        raise _unfit(
            text, f"{ranks} ranks are not a multiple of tp {tp} x ep {ep} x pp {pp}", _RANKS
        )
    left = ranks // (tp * ep * pp)
    axes: dict[str, int] = {"tp": tp, "ep": ep, "edp" if ep > 1 else "dp": left, "pp": pp}
    workload = Workload(axes, facts=facts)
    if ep > 1:
        workload.groups("dp", axes=("ep", "edp"))
    return Layout(text, workload, {})


def _unfit(text: WorkloadText, problem: str, remedy: str) -> ChakraError:
    return ChakraError(problem, path=text.path, remedy=remedy)
