"""For each rule about traces: one that breaks it, and its sound twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traces import COLL, RECV, SEND, coll, node, recv, run, send, trace

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import EdgeKind, ProcessGroup, Trace, TraceSet

Given = Trace | TraceSet


@dataclass(frozen=True)
class Case:
    """A trace of which a rule speaks a number of times, and one of which it does not."""

    broken: Callable[[], Given]
    sound: Callable[[], Given]
    count: int = 1


def host(node_id: int, **more):  # type: ignore[no-untyped-def]
    return node(node_id, is_cpu_op=True, **more)


def gpu(node_id: int, **more):  # type: ignore[no-untyped-def]
    return node(node_id, **{"is_cpu_op": False, "stream": 7, "device": 0, **more})


def two(a, b, **more):  # type: ignore[no-untyped-def]
    """A run of two ranks."""
    return run(trace(*a, rank=0, world=2, **more), trace(*b, rank=1, world=2, **more))


def many(count: int, **more):  # type: ignore[no-untyped-def]
    return trace(*(gpu(i, **more) for i in range(count)))


def _repeated() -> Trace:
    """A node with two attributes of one name."""
    broken = trace(node(1, is_cpu_op=True), node(2, is_cpu_op=True))
    broken.nodes.attributes.add("is_cpu_op", Kind.BOOL, [False], [0])  # type: ignore[arg-type]
    return broken


def _with_tensors(node_id: int, name: str):  # type: ignore[no-untyped-def]
    made = node(node_id)
    lists = (Kind.STRING_LIST, (name, "4"))
    made["attributes"] = {"inputs": lists, "outputs": lists}
    return made


SCHEMA = "aten::add(Tensor self, Tensor other) -> Tensor"
INPUTS = (b'[[1,1,0,4,4,"cpu"]]', b"[[2,2]]", b'["Tensor(float)"]')
ONE_GROUP = {"5": (0, 1)}

CASES: dict[str, Case] = {
    "ET101": Case(
        lambda: trace(node(1), node(2), node(1)), lambda: trace(node(1), node(2), node(3))
    ),
    "ET102": Case(
        lambda: trace(node(1), node(2, deps=(9, 1), ctrl=(8,))),
        lambda: trace(node(1), node(2, deps=(1,))),
        2,
    ),
    "ET103": Case(lambda: trace(node(1, deps=(1,))), lambda: trace(node(1))),
    "ET104": Case(
        lambda: trace(node(1), node(2, deps=(1, 1))),
        lambda: trace(node(1), node(2, deps=(1,), ctrl=(1,))),
    ),
    "ET105": Case(
        lambda: trace(node(1, deps=(3,)), node(2, deps=(1,)), node(3, deps=(2,))),
        lambda: trace(node(1), node(2, deps=(1,)), node(3, deps=(2,))),
    ),
    "ET106": Case(
        lambda: trace(node(1, deps=(9,)), node(2, deps=(1,)), node(3)),
        lambda: trace(node(1), node(2, deps=(1,)), node(3)),
    ),
    "ET107": Case(lambda: trace(), lambda: trace(node(1))),
    "ET108": Case(
        lambda: trace(node(2, deps=(1,)), node(1)), lambda: trace(node(1), node(2, deps=(1,)))
    ),
    "ET110": Case(
        lambda: trace(*(node(i) for i in range(5001))),
        lambda: trace(*(node(i) for i in range(5000))),
    ),
    "ET111": Case(
        lambda: run(*(trace(*(node(i) for i in range(4096)), rank=r) for r in range(4))),
        lambda: run(*(trace(*(node(i) for i in range(4095)), rank=r) for r in range(4))),
    ),
    "ET112": Case(
        lambda: trace(node(1), node(2, deps=(1,), ctrl=(1,))),
        lambda: trace(node(1), node(2), node(3, deps=(1,), ctrl=(2,))),
    ),
    "ET201": Case(
        lambda: trace(coll(1, pg_name=(Kind.INT64, 3))), lambda: trace(coll(1, pg_name="3"))
    ),
    "ET202": Case(
        lambda: trace(node(1, COLL, comm_type=0, comm_size=(Kind.UINT64, 4), is_cpu_op=False)),
        lambda: trace(coll(1)),
    ),
    "ET203": Case(_repeated, lambda: trace(node(1, is_cpu_op=True))),
    "ET204": Case(lambda: trace(node(1, NodeType.INVALID), node(2, 42)), lambda: trace(node(1)), 2),
    "ET205": Case(lambda: trace(node(1, COLL, comm_size=4)), lambda: trace(coll(1))),
    "ET206": Case(
        lambda: trace(node(1, COLL, comm_type=0)),
        lambda: trace(coll(1), node(2, COLL, comm_type=CollectiveType.BARRIER)),
    ),
    "ET207": Case(lambda: trace(coll(1, 17)), lambda: trace(coll(1, 9))),
    "ET208": Case(
        lambda: trace(coll(1, size=-1), coll(2, size=1 << 51)), lambda: trace(coll(1)), 2
    ),
    "ET209": Case(
        lambda: trace(node(1, SEND, comm_size=4), node(2, RECV, comm_size=4)),
        lambda: trace(send(1, 1), recv(2, 1)),
        2,
    ),
    "ET210": Case(lambda: trace(node(1, SEND, comm_size=4, comm_dst=1)), lambda: trace(send(1, 1))),
    "ET211": Case(
        lambda: trace(send(1, 1, size=0), node(2, RECV, comm_src=1)),
        lambda: trace(send(1, 1)),
        2,
    ),
    "ET212": Case(
        lambda: trace(node(1, COLL, comm_type=0, comm_size=4, is_cpu_op=True)),
        lambda: trace(coll(1), host(2)),
    ),
    "ET213": Case(lambda: trace(host(1), node(2)), lambda: trace(host(1), host(2))),
    "ET214": Case(
        lambda: trace(send(1, 1, comm_src=3), rank=0), lambda: trace(send(1, 1, comm_src=0), rank=0)
    ),
    "ET215": Case(
        lambda: trace(gpu(1, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")),
        lambda: trace(coll(1, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"), gpu(2, name="gemm")),
    ),
    "ET216": Case(
        lambda: trace(node(1), node(2, deps=(1,), edge_kinds="data,data")),
        lambda: trace(node(1), node(2, deps=(1,))),
    ),
    "ET217": Case(
        lambda: trace(node(1, NodeType.MEM_LOAD)),
        lambda: trace(node(1, NodeType.MEM_LOAD, tensor_size=4)),
    ),
    "ET218": Case(
        lambda: trace(
            node(1, 5, name="COMP_NODE_a", comm_dst=1, comm_tag=0, comm_size=4),
            node(2, 8, name="COMM_COLL_NODE_b"),
        ),
        lambda: trace(node(1, name="COMP_NODE_a"), coll(2, name="COMM_COLL_NODE_b")),
    ),
    "ET219": Case(
        lambda: trace(
            node(1, COLL, is_cpu_op=True),
            host(2, deps=(1,)),
            node(3, COLL, comm_type=0, comm_size=4, is_cpu_op=True),
            coll(4, deps=(2, 3)),
        ),
        lambda: trace(
            node(1, COLL, comm_type=0, comm_size=4, is_cpu_op=True), host(2, deps=(1,)), coll(3)
        ),
        2,
    ),
    "ET220": Case(
        lambda: trace(coll(1, 2, size=64, in_msg_nelems=4, dtype="Float")),
        lambda: trace(
            coll(1, 2, size=16, in_msg_nelems=4, dtype="Float"),
            coll(2, 2, size=64, in_msg_nelems=4, dtype="of a new kind"),
            coll(3, 5, size=64, in_msg_nelems=0, dtype="Float"),
        ),
    ),
    "ET301": Case(
        lambda: trace(node(1, start=-5), node(2, start=0, took=-1)),
        lambda: trace(node(1, start=5, took=1)),
        2,
    ),
    "ET302": Case(lambda: trace(node(1, took=10**14)), lambda: trace(node(1, took=10**9))),
    "ET303": Case(lambda: many(20), lambda: many(20, took=1000)),
    "ET304": Case(
        lambda: trace(host(1, start=100), gpu(2, start=50, deps=(1,), kind=EdgeKind.LAUNCH)),
        lambda: trace(host(1, start=100), gpu(2, start=150, deps=(1,), kind=EdgeKind.LAUNCH)),
    ),
    "ET305": Case(
        lambda: trace(gpu(1, start=0, took=100), gpu(2, start=50, took=10)),
        lambda: trace(gpu(1, start=0, took=100), gpu(2, start=50, took=10, stream=8)),
    ),
    "ET306": Case(
        lambda: trace(host(1, start=0, took=100, thread=1), host(2, start=50, took=1, thread=1)),
        lambda: trace(host(1, start=0, took=100, thread=1), host(2, start=50, took=1, thread=2)),
    ),
    "ET307": Case(
        lambda: trace(node(1, start=100), node(2, start=50, deps=(1,))),
        lambda: trace(node(1, start=100), node(2, start=150, deps=(1,))),
    ),
    "ET308": Case(lambda: many(20, took=2 * 10**9), lambda: many(20, took=10**6)),
    "ET309": Case(
        lambda: trace(node(1, took=100), node(2, took=100)), lambda: trace(node(1, took=2000))
    ),
    "ET310": Case(
        lambda: trace(*(gpu(i, start=i * 10**6, took=1000) for i in range(20))),
        lambda: trace(*(gpu(i, start=i * 10**6, took=10**5) for i in range(20))),
    ),
    "ET311": Case(
        lambda: trace(node(1, took=500, time_parts="gap:501")),
        lambda: trace(node(1, took=500, time_parts="gap:500")),
    ),
    "ET401": Case(
        lambda: trace(node(1), groups="no json"), lambda: trace(node(1), groups=ONE_GROUP)
    ),
    "ET402": Case(
        lambda: trace(coll(1, pg_name="6"), groups=ONE_GROUP),
        lambda: trace(coll(1, pg_name="5"), groups=ONE_GROUP),
    ),
    "ET403": Case(
        lambda: trace(coll(1, pg_name="5"), rank=2, groups=ONE_GROUP),
        lambda: trace(coll(1, pg_name="5"), rank=1, groups=ONE_GROUP),
    ),
    "ET404": Case(
        lambda: trace(coll(1, pg_name="5"), groups=[ProcessGroup(name="5", ranks=(0, 1), size=8)]),
        lambda: trace(coll(1, pg_name="5"), groups=ONE_GROUP),
    ),
    "ET405": Case(
        lambda: trace(
            node(1),
            groups=[ProcessGroup(name="5", ranks=(0, 1)), ProcessGroup(name="5", ranks=(1, 2))],
        ),
        lambda: trace(node(1), groups={"5": (0, 1), "6": (1, 2)}),
    ),
    "ET406": Case(
        lambda: trace(node(1), world=2, groups={"5": (0, 0), "6": (0, 2)}),
        lambda: trace(node(1), world=2, groups=ONE_GROUP),
        2,
    ),
    "ET407": Case(
        lambda: run(
            trace(node(1), rank=0, groups={"5": (0, 1)}),
            trace(node(1), rank=1, groups={"5": (1, 2)}),
        ),
        lambda: run(
            trace(node(1), rank=0, groups=ONE_GROUP), trace(node(1), rank=1, groups=ONE_GROUP)
        ),
    ),
    "ET409": Case(
        lambda: trace(coll(1, pg_candidates='["1", "2"]')),
        lambda: trace(coll(1, pg_name="1"), groups={"1": (0, 1)}),
    ),
    "ET408": Case(
        lambda: run(trace(node(1), rank=0, world=2), trace(node(1), rank=1, world=3)),
        lambda: two([node(1)], [node(1)]),
    ),
    "ET501": Case(
        lambda: run(trace(node(1), rank=0), trace(node(1), rank=2)),
        lambda: run(trace(node(1), rank=0), trace(node(1), rank=1)),
    ),
    "ET502": Case(
        lambda: two([coll(1), coll(2)], [coll(1)]),
        lambda: two([coll(1), coll(2)], [coll(1), coll(2)]),
    ),
    "ET503": Case(
        lambda: two([coll(1), coll(2, 2)], [coll(1, 2), coll(2)]),
        lambda: two([coll(1), coll(2, 2)], [coll(1), coll(2, 2)]),
    ),
    "ET504": Case(
        lambda: two([coll(1), coll(2)], [coll(1), coll(2, size=8)]),
        lambda: two([coll(1), coll(2, 2)], [coll(1), coll(2, 2, size=8)]),
    ),
    "ET505": Case(
        lambda: two([send(1, 1), recv(2, 1)], [node(1)]), lambda: two([send(1, 1)], [recv(1, 0)]), 2
    ),
    "ET506": Case(
        lambda: two([send(1, 1, size=8)], [recv(1, 0)]), lambda: two([send(1, 1)], [recv(1, 0)])
    ),
    "ET508": Case(lambda: two([send(1, 5)], [node(1)]), lambda: two([send(1, 1)], [recv(1, 0)])),
    "ET510": Case(
        lambda: two(
            [recv(1, 1), send(2, 1, deps=(1,))],
            [recv(1, 0), send(2, 0, deps=(1,))],
        ),
        lambda: two(
            [recv(1, 1), send(2, 1, deps=(1,))],
            [send(1, 0), recv(2, 0, deps=(1,))],
        ),
    ),
    "ET601": Case(
        lambda: trace(host(1, op_schema=SCHEMA, inputs=(b"[1]", b"[]", b""))),
        lambda: trace(host(1, op_schema=SCHEMA, inputs=INPUTS)),
    ),
    "ET602": Case(
        lambda: trace(gpu(1, stream=1), gpu(2, stream=2)),
        lambda: trace(gpu(1, stream=1), gpu(2, stream=2, deps=(1,), kind=EdgeKind.EVENT)),
    ),
    "ET603": Case(
        lambda: trace(host(1, host_id=4)), lambda: trace(host(1, host_id=4, start=5, took=1))
    ),
    "ET604": Case(lambda: trace(host(1, host_id=4)), lambda: trace(host(1, host_id=4, rf_id=3))),
    "ET605": Case(
        lambda: trace(
            host(1, name="cudaLaunchKernel", category="cuda_runtime", correlation=5),
            host(2, name="cudaLaunchKernel", category="cuda_runtime", correlation=6),
            gpu(3, correlation=6),
        ),
        lambda: trace(
            host(1, name="cudaLaunchKernel", category="cuda_runtime", correlation=5),
            gpu(3, correlation=5),
        ),
    ),
    "ET606": Case(
        lambda: trace(
            host(1, op_schema=SCHEMA, host_id=1), host(2, op_schema=SCHEMA, host_id=2, start=3)
        ),
        lambda: trace(
            host(1, op_schema=SCHEMA, host_id=1, start=1),
            host(2, op_schema=SCHEMA, host_id=2, start=3),
            host(3, op_schema=SCHEMA, host_id=3, tid=2),
        ),
    ),
    "ET607": Case(
        lambda: trace(
            host(1, op_schema=SCHEMA, host_id=1, tid=1, start=1),
            host(2, op_schema=SCHEMA, host_id=2, tid=2),
        ),
        lambda: trace(
            host(1, op_schema=SCHEMA, host_id=1, tid=1, start=1),
            host(2, op_schema=SCHEMA, host_id=2, tid=1),
        ),
    ),
    "ET701": Case(lambda: trace(node(1, NodeType.METADATA)), lambda: trace(node(1))),
    "ET702": Case(
        lambda: trace(node(1, NodeType.STORAGE), node(2, NodeType.INVALID)),
        lambda: trace(node(1), node(2, NodeType.MEM_LOAD)),
        2,
    ),
    "ET703": Case(lambda: trace(node(1, NodeType.MEM_STORE)), lambda: trace(node(1))),
    "ET704": Case(
        lambda: trace(coll(2, start=5), coll(1, start=9)),
        lambda: trace(coll(1, start=5), coll(2, start=9)),
    ),
    "ET705": Case(lambda: trace(host(1)), lambda: trace(gpu(1))),
    "ET706": Case(
        lambda: trace(gpu(1, device=0), gpu(2, device=1)),
        lambda: trace(gpu(1), coll(2, stream=8)),
    ),
    "ET707": Case(
        lambda: trace(*(gpu(i) for i in range(20)), coll(20, deps=(1, 2, 3))),
        lambda: trace(gpu(0), *(gpu(i, deps=(i - 1,)) for i in range(1, 20)), coll(20, deps=(19,))),
    ),
    "ET708": Case(
        lambda: trace(*(gpu(i, start=i * 1000, took=800) for i in range(20))),
        lambda: trace(*(gpu(i, start=i * 1000, took=950) for i in range(20))),
    ),
    "ET709": Case(lambda: trace(node(1)), lambda: trace(node(1), world=2)),
    "ET710": Case(
        lambda: trace(*(coll(i, kind) for i, kind in enumerate((1, 3, 4, 8, 9)))),
        lambda: trace(*(coll(i, kind) for i, kind in enumerate((0, 2, 5, 6, 7)))),
        5,
    ),
    "ET711": Case(lambda: trace(coll(1, 5)), lambda: trace(coll(1))),
    "ET725": Case(
        lambda: trace(coll(1, 5, 0, takes_recorded_time="ALL_TO_ALL of unknown size")),
        lambda: trace(coll(1, 5, 0)),
    ),
    "ET712": Case(
        lambda: trace(coll(1, 2, size=3), coll(2, 2, size=0), coll(3, size=-1)),
        lambda: trace(coll(1, 2, size=4), coll(2, size=0)),
        3,
    ),
    "ET713": Case(lambda: trace(coll(1, size=0)), lambda: trace(coll(1, size=4))),
    "ET714": Case(
        lambda: trace(coll(1, pg_name="tp"), coll(2, pg_name="3.0")),
        lambda: trace(coll(1, pg_name="3"), coll(2)),
        2,
    ),
    "ET715": Case(
        lambda: trace(coll(1), coll(2, pg_name="5")),
        lambda: trace(coll(1, pg_name="6"), coll(2, pg_name="5")),
    ),
    "ET716": Case(
        lambda: trace(coll(1, pg_name="5"), rank=0, groups={"5": (0,)}),
        lambda: trace(coll(1, pg_name="5"), rank=0, groups=ONE_GROUP),
    ),
    "ET717": Case(
        lambda: trace(
            coll(1, involved_dim=(Kind.BOOL_LIST, (False,))),
            coll(2, involved_dim=(Kind.BOOL_LIST, ())),
        ),
        lambda: trace(coll(1, involved_dim=(Kind.BOOL_LIST, (False, True)))),
        2,
    ),
    "ET718": Case(
        lambda: two([coll(1, 6, size=8)], [coll(1, 6, size=16)]),
        lambda: two([coll(1, 6, size=8)], [coll(1, 6, size=8)]),
    ),
    "ET719": Case(
        lambda: two(
            [coll(1, pg_name="5"), coll(2, pg_name="6")],
            [coll(1, pg_name="6"), coll(2, pg_name="5")],
        ),
        lambda: two(
            [coll(1, pg_name="5"), coll(2, pg_name="6")],
            [coll(1, pg_name="5"), coll(2, pg_name="6")],
        ),
    ),
    "ET720": Case(
        lambda: trace(send(1, 1, tag=500_000_000), recv(2, 1, tag=-1)),
        lambda: trace(send(1, 1, tag=499_999_999), recv(2, 1, tag=0)),
        2,
    ),
    "ET723": Case(
        lambda: trace(*(coll(i, involved_dim=(Kind.BOOL_LIST, (True, i > 2))) for i in range(5))),
        lambda: trace(coll(1, involved_dim=(Kind.BOOL_LIST, (True,) * 4)), coll(2)),
        2,
    ),
    "ET724": Case(
        lambda: trace(gpu(1, device=0), coll(2, device=1)),
        lambda: trace(gpu(1, device=1), coll(2, device=1), host(3, device=0)),
    ),
    "ET730": Case(
        lambda: trace(gpu(1), gpu(2, num_ops=0)), lambda: trace(gpu(1, num_ops=5), host(2)), 2
    ),
    "ET731": Case(lambda: trace(gpu(1)), lambda: trace(gpu(1, tensor_size=5), host(2))),
    "ET732": Case(lambda: trace(node(1)), lambda: trace(_with_tensors(1, "a"))),
    "ET733": Case(
        lambda: trace(_with_tensors(1, "a"), _with_tensors(2, "b"), _with_tensors(3, "a")),
        lambda: trace(_with_tensors(1, "a"), _with_tensors(2, "b")),
    ),
    "ET801": Case(
        lambda: trace(node(1), node(2, ctrl=(1,))), lambda: trace(node(1), node(2, deps=(1,)))
    ),
    "ET901": Case(
        lambda: trace(host(1, name="aten::add")),
        lambda: trace(host(1, name="aten::add", op_schema=SCHEMA), host(2, name="## step ##")),
    ),
    "ET902": Case(
        lambda: trace(host(1, op_schema=SCHEMA)),
        lambda: trace(host(1, op_schema=SCHEMA, inputs=INPUTS), host(2, op_schema="x::y() -> ()")),
    ),
    "ET903": Case(
        lambda: trace(host(1, op_schema=SCHEMA, inputs=(b"[1]", b"", b""))),
        lambda: trace(host(1, op_schema=SCHEMA, inputs=INPUTS)),
    ),
    "ET904": Case(
        lambda: trace(host(1, op_schema="mine::f(Tensor self) -> Tensor", inputs=INPUTS)),
        lambda: trace(host(1, op_schema="aten::neg(Tensor self) -> Tensor", inputs=INPUTS)),
    ),
    "ET905": Case(
        lambda: trace(host(1, kernel_backend="triton"), host(2, op_schema="aten::f() -> ()")),
        lambda: trace(host(1, kernel_backend="", op_schema="aten::f() -> ()")),
    ),
}
