"""Small models, and plans to run them by, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from chakra_et.workloads import Exchange, Gather, Model, Plan, Recompute, Schedule

L, H, A, KV, F, V = 8, 64, 8, 4, 96, 128
DENSE = Model(name="dense", layers=L, hidden=H, heads=A, kv_heads=KV, ffn=F, vocabulary=V)
GPT = Model(
    name="gpt", layers=L, hidden=H, heads=A, ffn=F, vocabulary=V, gated=False, bias=True,
    norm_bias=True, tied=True, positions=256,
)  # fmt: skip
E, TOP, FE = 4, 2, 48
MOE = Model(
    name="moe", layers=L, hidden=H, heads=A, kv_heads=KV, ffn=F, vocabulary=V, experts=E,
    experts_per_token=TOP, expert_ffn=FE,
)  # fmt: skip
POWERS = st.sampled_from([1, 2, 4])

plans = st.builds(
    lambda schedule_chunks, m, **options: Plan(
        schedule=schedule_chunks[0],
        chunks=schedule_chunks[1],
        global_batch=options["micro_batch"] * options["dp"] * m * options["pp"],
        sequence=64,
        **options,
    ),
    schedule_chunks=st.sampled_from([(s, 1) for s in Schedule if s is not Schedule.INTERLEAVED]),
    m=st.integers(1, 2),
    model=st.sampled_from([DENSE, GPT]),
    tp=POWERS, pp=POWERS, dp=POWERS, cp=st.sampled_from([1, 2]),
    micro_batch=st.integers(1, 2),
    sequence_parallel=st.booleans(),
    zero=st.integers(0, 3),
    recompute=st.sampled_from(Recompute),
    causal=st.booleans(),
    exchange=st.sampled_from(Exchange),
    gather=st.just(Gather.LAYER),
)  # fmt: skip
interleaved = st.builds(
    lambda pp, chunks, m: Plan(
        model=DENSE, pp=pp, tp=2, dp=2, chunks=chunks, schedule=Schedule.INTERLEAVED,
        global_batch=2 * pp * m, sequence=64,
    ),
    pp=st.just(2), chunks=st.sampled_from([2, 4]), m=st.integers(1, 3),
)  # fmt: skip
with_experts = st.builds(
    lambda tp, ep, dp, pp, cp, m, **options: Plan(
        model=MOE, tp=tp, ep=ep, dp=ep * dp, pp=pp, cp=cp, sequence=64,
        global_batch=ep * dp * m * pp, **options,
    ),
    tp=st.sampled_from([1, 2]), ep=POWERS, dp=st.sampled_from([1, 2]),
    pp=st.sampled_from([1, 2]), cp=st.sampled_from([1, 2]), m=st.integers(1, 2),
    sequence_parallel=st.booleans(), zero=st.integers(0, 3),
)  # fmt: skip
