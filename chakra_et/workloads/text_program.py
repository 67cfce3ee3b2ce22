"""What every rank does in a workload text: the loop of its policy, as a graph.

ASTRA-sim 1.0 walks through the layers forward and back. Computing is one sequence. A collective is
waited for at once, or at the place where the loop needs what it brings, and overlaps with what is
computed until then:

- forward: at once; all-to-alls of a DLRM behind its last bottom layer, with which they overlap;
- input gradient: at once in transformers; else behind the layer's weight gradient, and for the
  embedding of a DLRM (exchanged as soon as the gradients of its top layers are there) at the end;
- weight gradient: before the layer's forward pass of the next step.

Behind a collective comes the update of its layer; who waits for the one waits for both.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from chakra_et.build import Rank
from chakra_et.build.graph import Done
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.workloads.text_layout import Layout
from chakra_et.workloads.text_pipeline import Pipeline, pipeline
from chakra_et.workloads.texts import Dialect, Layer, Pass, Policy, WorkloadText

_DLRM: Final = (Policy.DLRM, Policy.DLRM_ENHANCED)
WEIGHTS_FIRST: Final = (Policy.DATA, *_DLRM)
"""These compute the gradient of a layer's weights before that of its input."""
_GRADIENTS_AT_ONCE: Final = (Policy.TRANSFORMER, Policy.TRANSFORMER_RECOMPUTED)


def text_program(layout: Layout, clock_ghz: float = 1.0, steps: int = 1) -> Callable[[Rank], None]:
    """The program of every rank; a cycle takes 1 / `clock_ghz` ns."""
    stages = pipeline(layout)

    def run(rank: Rank) -> None:
        loop = _Loop(rank, layout, Fraction(str(clock_ghz)), stages)
        for _ in range(steps):
            loop.step()
        if not len(rank):
            raise ChakraError(
                "nothing is left to run",
                path=layout.text.path,
                remedy="No layer computes, or communicates among more than one rank.",
            )

    return run


class _Loop:
    """The loop of a policy on one rank.

    `front` is what everything from here on waits for: the last computation, and collectives that
    have been waited for. `gradients` has what each layer's next forward pass waits for.
    """

    def __init__(
        self, rank: Rank, layout: Layout, clock_ghz: Fraction, stages: Pipeline | None
    ) -> None:
        self._rank = rank
        self._layout = layout
        self._text = layout.text
        self._clock_ghz = clock_ghz
        self._pipeline = stages
        self._front: list[Done] = []
        self._gradients: dict[int, Done] = {}

    def step(self) -> None:
        """One pass over all layers, forward and back."""
        policy = self._text.policy
        if policy is Policy.MICRO:
            self._sweep()
            return
        with self._rank.on(phase="forward"):
            self._forward()
        if policy is Policy.INFERENCE:
            return
        with self._rank.on(phase="backward"):
            if policy in WEIGHTS_FIRST:
                self._back_weights_first()
            else:
                self._back_inputs_first()

    # -----------------------------------------------------------------------------------------
    # The loops

    def _sweep(self) -> None:
        """A micro-benchmark: one collective behind the other, without computations."""
        for number in range(len(self._text.layers)):
            for which in Pass:
                self._wait_at_once(self._communicate(number, which))

    def _forward(self) -> None:
        pending: list[Done] = []
        for number, layer in enumerate(self._text.layers):
            self._pass_messages(number, forward=True, before=True)
            self._wait(self._gradients.pop(number, ()))
            self._compute(number, Pass.FORWARD)
            exchange = layer.passes[Pass.FORWARD].collective is CollectiveType.ALL_TO_ALL
            done = self._communicate(number, Pass.FORWARD)
            if self._text.policy in _DLRM and exchange:
                pending.append(done)
            else:
                self._wait_at_once(done)
            if number == self._text.last_bottom_layer:
                self._wait(*pending)
                pending.clear()
            self._pass_messages(number, forward=True, before=False)

    def _back_weights_first(self) -> None:
        """DATA and DLRM: the gradient of a layer's weights, then that of its input.

        The first layer's input is data: its gradient is not computed.
        """
        embedding: list[Done] = []
        bottom = self._text.last_bottom_layer
        for number in reversed(range(len(self._text.layers))):
            self._compute(number, Pass.WEIGHT_GRADIENT)
            self._gradients[number] = self._communicate(number, Pass.WEIGHT_GRADIENT)
            is_embedding = self._text.policy in _DLRM and number == 0
            if is_embedding and self._text.policy is Policy.DLRM:
                self._wait(*embedding)
            if number:
                self._compute(number, Pass.INPUT_GRADIENT)
            if not is_embedding:
                self._wait_at_once(self._communicate(number, Pass.INPUT_GRADIENT))
            if self._text.policy in _DLRM and number == min(bottom + 1, len(self._text.layers) - 1):
                embedding.append(self._communicate(0, Pass.INPUT_GRADIENT))

    def _back_inputs_first(self) -> None:
        """All others: the gradient of a layer's input, then that of its weights."""
        for number in reversed(range(len(self._text.layers))):
            self._pass_messages(number, forward=False, before=True)
            with self._rank.on(phase="recompute"):
                for again in self._text.again_before(number):
                    self._compute(again, Pass.FORWARD)
                    self._wait_at_once(self._communicate(again, Pass.FORWARD))
            self._compute(number, Pass.INPUT_GRADIENT)
            gradient = self._communicate(number, Pass.INPUT_GRADIENT)
            if self._text.policy in _GRADIENTS_AT_ONCE:
                self._wait_at_once(gradient)
            self._compute(number, Pass.WEIGHT_GRADIENT)
            self._gradients[number] = self._communicate(number, Pass.WEIGHT_GRADIENT)
            if self._text.policy not in _GRADIENTS_AT_ONCE:
                self._wait(gradient)
            self._pass_messages(number, forward=False, before=False)

    # -----------------------------------------------------------------------------------------
    # Nodes

    def _wait_at_once(self, done: Done) -> None:
        """Wait for what has just been added: it comes behind all that was waited for before."""
        if done != ():
            self._front = [done]

    def _wait(self, *done: Done) -> None:
        self._front += [one for one in done if one != ()]

    def _compute(self, number: int, which: Pass) -> None:
        layer = self._text.layers[number]
        cycles = layer.passes[which].cycles
        if not cycles:
            return
        with self._rank.on(stream=0, layer=number):
            done = self._rank.compute(
                f"{layer.name} {which.value}", op_type=which.value, after=self._front,
                duration_ns=self._ns(cycles),
            )  # fmt: skip
        self._front = [done]

    def _communicate(self, number: int, which: Pass) -> Done:
        """The collective of a pass and the update behind it; what to wait for, if for anything."""
        layer = self._text.layers[number]
        work = layer.passes[which]
        family = self._layout.family(layer, which)
        if work.collective is None or not work.size_bytes or self._rank.size(family) == 1:
            return ()
        involved = self._layout.involved.get(family)
        with self._rank.on(layer=number):
            done = self._rank.collective(
                work.collective, family,
                input_bytes(self._text, layer, which, self._rank.size(family)),
                name=f"{layer.name} {which.value} {work.collective.name.lower()}",
                after=self._front,
                attributes=None if involved is None else {"involved_dim": involved},
            )  # fmt: skip
            if not layer.update_cycles:
                return done
            return self._rank.compute(
                f"{layer.name} {which.value} update", op_type="update", after=done,
                duration_ns=self._ns(layer.update_cycles),
            )  # fmt: skip

    def _pass_messages(self, number: int, *, forward: bool, before: bool) -> None:
        if self._pipeline is not None:
            self._wait(
                *self._pipeline.messages(
                    self._rank, number, self._front, forward=forward, before=before
                )
            )

    def _ns(self, cycles: int) -> int:
        return round(cycles / self._clock_ghz)


def input_bytes(text: WorkloadText, layer: Layer, which: Pass, ranks: int) -> int:
    """What a rank brings to a collective. SimAI says of an all-gather what it leaves."""
    work = layer.passes[which]
    if text.dialect is Dialect.SIMAI and work.collective is CollectiveType.ALL_GATHER:
        return -(-work.size_bytes // ranks)
    return work.size_bytes
