"""Operations that communicate, as lines of a program; no PyTorch is needed to write them."""

from __future__ import annotations

import json
from typing import Any

from traces import COMP, coll, node, recv, run, send, trace

from chakra_et.benchmark import reasons
from chakra_et.benchmark.choices import BackEnd, ShrinkAs
from chakra_et.benchmark.comms.all_ranks import dry_run, parts_of, program_of
from chakra_et.benchmark.comms.job import prepare
from chakra_et.benchmark.program import Program
from chakra_et.benchmark.running import Settings
from chakra_et.definitions import CollectiveType
from chakra_et.model import EdgeKind, TraceSet

DRY = Settings(back_end=BackEnd.DRY)
GROUP, WORK = "__torch__.torch.classes.c10d.ProcessGroup process_group", "(Tensor[], Work)"
SUM = "__torch__.torch.classes.c10d.ReduceOp reduce_op"
ALL_REDUCE = f"c10d::allreduce_(Tensor[] tensors, {GROUP}, {SUM}, bool async_op) -> {WORK}"
GATHER = (
    f"c10d::_allgather_base_(Tensor output_tensor, Tensor input_tensor, {GROUP}, bool async_op)"
    " -> (Tensor, Work)"
)
ROOTED = f"c10d::gather_(Tensor[][] output_tensors, Tensor[] input_tensors, {GROUP}, int root_rank)"
RELU = "aten::relu_(Tensor(a!) self) -> Tensor(a!)"
FUNCTIONAL = "_c10d_functional::all_reduce(Tensor input, str op, Any group_name) -> Tensor"
OBJECT = "<Object>"


def tensor(number: int, floats: int = 8) -> list[Any]:
    """A tensor of a storage, as a host trace has it."""
    return [number, 100 + number, 0, floats, 4, "cpu"]


def kind_of(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 6 and value[-1] == "cpu":
        return "Tensor(float)"
    if isinstance(value, list):
        return f"GenericList[{','.join(map(kind_of, value))}]"
    return {bool: "Bool", int: "Int"}.get(type(value), "Object" if value == OBJECT else "String")


def shape_of(value: Any) -> Any:
    if isinstance(value, list):
        return [value[3]] if kind_of(value) == "Tensor(float)" else [shape_of(v) for v in value]
    return []


def operation(node_id: int, schema: str, *values: Any) -> dict[str, Any]:
    """A call of an operator on the host."""
    texts = (list(values), [shape_of(v) for v in values], [kind_of(v) for v in values])
    return node(
        node_id, COMP, name=schema.partition("(")[0], op_schema=schema, is_cpu_op=True,
        start=node_id * 10, took=5, rf_id=node_id, inclusive_ns=5,
        inputs=tuple(json.dumps(text).encode() for text in texts),
    )  # fmt: skip


def asked(node_id: int, kind: int = CollectiveType.ALL_REDUCE, **more: Any) -> Any:
    """A collective that the operation before it asked for."""
    told = {
        "deps": (node_id - 1,),
        "start": node_id * 10,
        "took": 7,
        "rf_id": node_id,
    }
    made = coll(node_id, int(kind), **(told | {"size": 32, "dtype": "Float"} | more))
    return made | {"kind": EdgeKind.THREAD}


def ranks(*nodes: Any, count: int = 2, **facts: Any) -> TraceSet:
    """The same nodes on each rank."""
    return run(*(trace(*nodes, rank=rank, world=count, **facts) for rank in range(count)))


def programs(traces: TraceSet, kept: int | None = None) -> dict[int, Program]:
    """The program of each rank, or of the first few."""
    job = prepare(traces, kept, ShrinkAs.GROUP)
    return {part.rank: program_of(traces[part.rank], part, DRY)[0] for part in parts_of(job, 30)}


def lines(program: Program) -> list[str]:
    return [line for step in program.steps for line in step.lines if "RANKS" in line]


def test_a_collective_is_its_operator_on_a_group_made_anew() -> None:
    nodes = [operation(1, ALL_REDUCE, [tensor(1)], OBJECT, OBJECT, False), asked(2, pg_name="5")]
    program = programs(ranks(*nodes, groups={"5": (0, 1)}))[1]
    assert lines(program) == [
        "RANKS.ask(0, True, torch.ops.c10d.allreduce_.default, [t[0]], "
        'RANKS.boxed("5"), REDUCTION, False)',
        "RANKS.finish_all()",
    ]
    assert '"5": (0, 1),' in program.text()
    compile(program.text(), "program", "exec")


def test_who_works_on_its_memory_waits_for_what_goes_on() -> None:
    """The second operation touches other memory; nobody reads the second collective's."""
    nodes = [
        operation(1, ALL_REDUCE, [tensor(1)], OBJECT, OBJECT, True), asked(2),
        operation(3, ALL_REDUCE, [tensor(2)], OBJECT, OBJECT, True), asked(4),
        operation(5, RELU, tensor(3)), operation(6, RELU, tensor(1)),
    ]  # fmt: skip
    steps = [step.lines for step in programs(ranks(*nodes))[0].steps]
    assert not any("finish" in line for step in steps[:3] for line in step)
    assert steps[3][0] == "RANKS.finish(0)"
    assert steps[3][-1] == "RANKS.finish_all()"


def test_functional_collectives_go_by_the_name_that_the_group_has_now() -> None:
    wait = "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor"
    nodes = [
        operation(1, FUNCTIONAL, tensor(1), "sum", "7"), asked(2, pg_name="7"),
        operation(3, wait, tensor(1)),
    ]  # fmt: skip
    assert lines(programs(ranks(*nodes, groups={"7": (0, 1)}))[0]) == [
        "RANKS.functional(0, torch.ops._c10d_functional.all_reduce.default, t[0], "
        "'sum', RANKS.name(\"7\"))",
        "RANKS.wait(1, torch.ops._c10d_functional.wait_tensor.default, t[0])",
        "RANKS.finish_all()",
    ]


def test_on_fewer_ranks_an_operator_takes_the_parts_of_those_that_are_left() -> None:
    gather = CollectiveType.ALL_GATHER
    nodes = [operation(1, GATHER, tensor(1, 32), tensor(2), OBJECT, True), asked(2, gather)]
    whole, few = programs(ranks(*nodes, count=4))[0], programs(ranks(*nodes, count=4), 2)[0]
    assert "_allgather_base_.default, t[0], t[1]," in lines(whole)[0]
    assert "_allgather_base_.default, few(t[0], 2, 4), t[1]," in lines(few)[0]


def test_a_rank_alone_and_a_root_that_is_gone_leave_delays() -> None:
    nodes = [operation(1, ALL_REDUCE, [tensor(1)], OBJECT, OBJECT, False), asked(2)]
    assert lines(programs(ranks(*nodes), 1)[0])[0] == "RANKS.delay(0, 7)"
    rooted = [
        operation(1, f"{ROOTED} -> Work", [], [tensor(1)], OBJECT, 3),
        asked(2, CollectiveType.GATHER),
    ]
    assert lines(programs(ranks(*rooted, count=4), 2)[0])[0] == "RANKS.delay(0, 7)"


def test_messages_go_from_the_recorded_sender_through_the_group_of_all() -> None:
    sends = f"c10d::send(Tensor[] tensors, {GROUP}, int dst, int tag) -> Work"
    takes = f"c10d::recv_any_source_(Tensor[] tensors, {GROUP}, int tag) -> Work"
    told = {"deps": (1,), "start": 20, "took": 3, "rf_id": 2, "size": 32, "tag": 9}
    traces = run(
        trace(operation(1, sends, [tensor(1)], OBJECT, 0, 9), send(2, 1, **told), rank=0, world=2),
        trace(operation(1, takes, [tensor(1)], OBJECT, 9), recv(2, 0, **told), rank=1, world=2),
    )
    texts = {rank: lines(program)[0] for rank, program in programs(traces).items()}
    assert texts == {
        0: 'RANKS.ask(0, False, torch.ops.c10d.send.default, [t[0]], RANKS.boxed(""), 1, 9)',
        1: 'RANKS.ask(0, False, torch.ops.c10d.recv_.default, [t[0]], RANKS.boxed(""), 0, 9)',
    }


def test_what_cannot_be_asked_for_is_left_out_with_a_reason() -> None:
    nodes = [
        operation(1, ALL_REDUCE, [tensor(1)], OBJECT, OBJECT, True), asked(2),
        operation(3, "c10d::allreduce_(Tensor[] tensors) -> Work", [tensor(1)], OBJECT), asked(4),
        operation(5, ALL_REDUCE, ["?"], OBJECT, OBJECT, True), asked(6),
        operation(7, ALL_REDUCE, [tensor(1)], OBJECT, OBJECT, True),
        asked(8, pg_candidates='["1", "2"]'),
    ]  # fmt: skip
    traces = ranks(*nodes)
    done = dry_run(traces, prepare(traces), DRY).outcomes[0].account
    assert {item.reason for item in done.left_out} == {
        reasons.OTHER_COUNT, reasons.UNREADABLE, "its process group is not known",
    }  # fmt: skip
    assert done.runs == 1
