"""The options of a plan, which verbs share: a model, degrees of parallelism, batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from chakra_et.workloads.model import load_model, model_names
from chakra_et.workloads.plan import ORDER, Exchange, Gather, Phase, Plan, Recompute, Schedule

MODEL_HELP: Final = f"{', '.join(model_names())}, or a TOML file."


def plan_of(
    model: Annotated[str, typer.Option(metavar="NAME|FILE", help=MODEL_HELP)],
    tp: Annotated[int, typer.Option(help="Tensor-parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(help="Pipeline stages.")] = 1,
    dp: Annotated[int, typer.Option(help="Data-parallel replicas.")] = 1,
    cp: Annotated[int, typer.Option(help="Context-parallel ranks.")] = 1,
    ep: Annotated[int, typer.Option(help="Expert-parallel ranks, a part of dp.")] = 1,
    sp: Annotated[bool, typer.Option("--sp", help="Sequence parallelism over tp.")] = False,
    mbs: Annotated[int, typer.Option(help="Sequences of a micro-batch.")] = 1,
    gbs: Annotated[
        int, typer.Option(help="Sequences of a step, over all dp; 0: mbs x dp x pp.")
    ] = 0,
    seq: Annotated[int, typer.Option(help="Tokens of a sequence, or of a prompt.")] = 2048,
    zero: Annotated[int, typer.Option(help="ZeRO stage 0 to 3; 1: distributed optimizer.")] = 1,
    recompute: Annotated[Recompute, typer.Option(help="What is recomputed.")] = Recompute.NONE,
    schedule: Annotated[Schedule, typer.Option(help="Of the pipeline.")] = Schedule.ONE_F_ONE_B,
    chunks: Annotated[int, typer.Option(help="Chunks of a stage, if interleaved.")] = 1,
    phase: Annotated[
        Phase, typer.Option(help="serve: prefill and decode on two sets of ranks.")
    ] = Phase.TRAIN,
    context: Annotated[int, typer.Option(help="Tokens in the past of a decode.")] = 2048,
    tokens: Annotated[int, typer.Option(help="Tokens to decode.")] = 1,
    dtype: Annotated[str, typer.Option(help="Type of weights and activations.")] = "bf16",
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Sum gradients in buckets during the backward pass.")
    ] = False,
    bucket: Annotated[
        int, typer.Option(help="Elements of a bucket; 0: all in one. Default: the framework's.")
    ] = -1,
    gradient_bytes: Annotated[
        int, typer.Option(help="Bytes of a gradient. Default: 4, with --zero 2 or 3 as dtype.")
    ] = 0,
    gather: Annotated[Gather, typer.Option(help="What ZeRO-3 gathers at once.")] = Gather.MODULE,
    exchange: Annotated[
        Exchange, typer.Option("--cp-exchange", help="How cp ranks get keys and values.")
    ] = Exchange.RING,
    vocab_multiple: Annotated[
        int, typer.Option(help="Pad the vocabulary to a multiple of this x tp; Megatron: 128.")
    ] = 1,
    causal: Annotated[
        bool, typer.Option("--causal", help="Attention skips what the mask hides: half the work.")
    ] = False,
    order: Annotated[str, typer.Option(help="Order of ranks, neighbours first.")] = ORDER,
) -> Plan:
    """The plan that options tell. Raises ChakraError where they do not fit together."""
    return Plan(
        model=load_model(model), tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, sequence_parallel=sp,
        micro_batch=mbs, global_batch=gbs, sequence=seq, zero=zero, recompute=recompute,
        schedule=schedule, chunks=chunks, phase=phase, context=context, tokens=tokens, dtype=dtype,
        gradient_bytes=gradient_bytes, overlap=overlap, bucket=bucket, gather=gather,
        exchange=exchange, vocabulary_multiple=vocab_multiple, causal=causal, order=order,
    )  # fmt: skip


def with_plan(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that takes the options of a plan in place of its parameter `plan`.

    Where the verb can do without (its `plan` is None by default), `--model` may be left out.
    """
    own = inspect.signature(verb, eval_str=True)
    named = inspect.signature(plan_of, eval_str=True).parameters
    needed = own.parameters["plan"].default is inspect.Parameter.empty
    options = [
        one if needed or one.name != "model" else one.replace(default=None)
        for one in named.values()
    ]

    def run(**given: Any) -> None:
        told = {name: given.pop(name) for name in named}
        plan = None if told["model"] is None else plan_of(**told)
        verb(plan=plan, **given)

    others = [one for one in own.parameters.values() if one.name != "plan"]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*options, *others)]
    told: Any = run
    told.__signature__ = own.replace(parameters=parameters)
    told.__annotations__ = {one.name: one.annotation for one in parameters}
    told.__doc__ = verb.__doc__
    return run
