"""The builder: what a program says is what the traces hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chakra_et
from chakra_et import CollectiveType, NodeType
from chakra_et.build import BuildError, PackedSet, Rank, Workload, write_packed, write_workload
from chakra_et.definitions import EdgeKind, Kind

Program = Callable[[Rank], None]


def ring(rank: Rank) -> None:
    """All-reduce of 1 MiB: every rank sends to the next one, and waits for the one before."""
    count = rank.size("rank")
    done = None
    for _ in range(2 * (count - 1)):
        rank.send(rank.peer(rank=1), (1 << 20) // count, after=done)
        done = rank.receive(rank.peer(rank=-1), (1 << 20) // count, after=done)


def pipeline(rank: Rank) -> None:
    """Two collectives and messages from stage to stage."""
    stage = rank.coordinate("pp")
    x = rank.tensor("x", (4, 8))
    with rank.on(stream=0, phase="forward", layer=stage):
        if stage > 0:
            rank.receive(rank.peer(pp=-1), x.size_bytes, outputs=[x])
        rank.compute("matmul", flops=512, moved_bytes=192, inputs=[x], outputs=[x])
        rank.all_reduce("tp", x.size_bytes, inputs=[x], outputs=[x])
        if stage < rank.size("pp") - 1:
            rank.send(rank.peer(pp=1), x.size_bytes, inputs=[x])
    rank.all_reduce("dp", 1024)


def test_a_ring_all_reduce_of_8_ranks() -> None:
    traces = Workload(rank=8).traces(ring)
    assert sorted(traces) == list(range(8))
    for rank, trace in traces.items():
        sends = trace.nodes.where(type=NodeType.COMM_SEND)
        receives = trace.nodes.where(type=NodeType.COMM_RECV)
        assert [(n.comm_src, n.comm_dst, n.comm_size) for n in sends] == [
            (rank, (rank + 1) % 8, 131072)
        ] * 14
        assert {(n.comm_src, n.comm_dst) for n in receives} == {((rank - 1) % 8, rank)}
        assert [n.comm_tag for n in sends] == [n.comm_tag for n in receives] == list(range(14))
    assert not chakra_et.validate(traces, "astra-sim").outcomes


def test_a_program_runs_once_for_ranks_that_it_does_not_tell_apart() -> None:
    runs: list[tuple[int, int]] = []

    def program(rank: Rank) -> None:
        pipeline(rank)
        runs.append((rank.coordinate("pp"), len(rank)))

    traces = Workload(tp=2, dp=3, pp=2).traces(program)
    assert runs == [(0, 4), (1, 4)]
    assert len(traces) == 12
    assert not chakra_et.validate(traces, "astra-sim").outcomes


def test_a_program_that_asks_for_its_rank_runs_for_every_rank() -> None:
    def program(rank: Rank) -> None:
        rank.compute("work", flops=rank.id)

    traces = Workload(rank=5).traces(program)
    assert [trace.nodes[0].num_ops for trace in traces.values()] == [0, 1, 2, 3, 4]


def test_nodes_hold_what_was_said() -> None:
    def program(rank: Rank) -> None:
        x, w, y = (rank.tensor(n, s) for n, s in (("x", (4, 8)), ("w", (8, 2)), ("y", (4, 2))))
        with rank.on(stream=7, phase="forward", layer=3, micro_batch=1):
            rank.compute(
                "aten::mm", op_type="matmul", flops=128, moved_bytes=112, duration_ns=1500,
                inputs=[x, w], outputs=[y],
            )  # fmt: skip
        rank.load("fetch", 4096, attributes={"tensor_loc": 2, "comm_priority": 1})
        rank.node(
            NodeType.METADATA, "note", cpu=True, attributes={"mine": (Kind.BOOL_LIST, [True])}
        )

    (trace,) = Workload(tensors=True, rank=1).traces(program).values()
    mm, load, note = trace.nodes
    assert (mm.type, mm.op_type, mm.num_ops, mm.tensor_size) == (NodeType.COMP, "matmul", 128, 112)
    assert (mm.duration_ns, mm.stream, mm.phase, mm.layer, mm.micro_batch) == (
        1500, 7, "forward", 3, 1,
    )  # fmt: skip
    assert mm.is_cpu_op is False
    assert note.is_cpu_op is True
    assert mm.inputs.shapes == b"[[4,8],[8,2]]"
    assert mm.inputs.types == b'["Tensor(c10::BFloat16)","Tensor(c10::BFloat16)"]'
    assert mm.attributes["inputs"] == ("x", "64", "w", "32")
    assert mm.attributes["outputs"] == ("y", "16")
    assert (load.type, load.tensor_size, load.tensor_loc) == (NodeType.MEM_LOAD, 4096, 2)
    assert note.attributes["mine"] == (True,)
    assert trace.metadata.get("grid") == '{"rank":1}'


def test_who_waits_for_whom() -> None:
    def program(rank: Rank) -> None:
        x = rank.tensor("x", (1,))
        with rank.on(stream=1):
            rank.compute("a", outputs=[x])  # 1
            b = rank.compute("b")  # 2: behind a on the stream
        with rank.on(stream=2):
            rank.compute("c", inputs=[x])  # 3: reads what a wrote
            rank.compute("d", inputs=[x], after=b)  # 4: a is before b on stream 1
        rank.compute("e", after=[b, None])  # 5: on no stream
        rank.node(NodeType.COMP, "f", called_by=b)  # 6

    (trace,) = Workload(rank=1).traces(program).values()
    assert [[(s, k) for s, k, _ in node.edges] for node in trace.nodes] == [
        [],
        [(1, EdgeKind.STREAM)],
        [(1, EdgeKind.DATA)],
        [(2, EdgeKind.DATA), (3, EdgeKind.STREAM)],
        [(2, EdgeKind.DATA)],
        [(2, EdgeKind.CALL)],
    ]


def test_a_collective_of_one_rank_is_left_out_and_passes_its_waits_on() -> None:
    def program(rank: Rank) -> None:
        x = rank.tensor("x", (1,))
        a = rank.compute("a")
        rank.compute("b", outputs=[x])
        rank.compute("c", after=rank.all_reduce("tp", 64, after=a, inputs=[x], outputs=[x]))
        rank.compute("d", inputs=[x])

    traces = Workload(tp=1, dp=2).traces(program)
    assert [node.data_deps for node in traces[0].nodes] == [[], [], [1, 2], [1, 2]]


def test_groups_besides_the_axes() -> None:
    workload = Workload(tp=2, ep=2, edp=2)
    workload.groups("dp", axes=("ep", "edp"))
    workload.groups("ends", ranks=[[0, 7]])

    def program(rank: Rank) -> None:
        rank.all_reduce("dp", 64)
        if rank.in_group("ends"):
            rank.broadcast("ends", 32)

    traces = workload.traces(program)
    names = {g.description: g.name for g in traces[7].groups}
    by_rank = {g.description: g.ranks for g in traces[7].groups}
    assert by_rank["dp"] == (1, 3, 5, 7)
    assert by_rank["ends"] == (0, 7)
    assert [n.pg_name for n in traces[7].nodes] == [names["dp"], names["ends"]]
    assert [n.comm_type for n in traces[7].nodes] == [
        CollectiveType.ALL_REDUCE, CollectiveType.BROADCAST,
    ]  # fmt: skip
    assert len(traces[1].nodes) == 1
    numbers = list(workload.comm_groups())
    assert numbers == [str(n) for n in range(10, 10 + 4 + 4 + 4 + 2 + 1)]


@pytest.mark.parametrize("program", [ring, pipeline], ids=["ring", "pipeline"])
@pytest.mark.parametrize("form", ["plain", "compressed", "packed"])
def test_files_hold_the_traces(program: Program, form: str, tmp_path: Path) -> None:
    def workload() -> Workload:
        # Ranks on both sides of 128, where the numbers of peers grow by a byte.
        return Workload(rank=130) if program is ring else Workload(tp=2, dp=11, pp=6)

    traces = workload().traces(program)
    some = (0, 1, 64, 126, 127, 128, 129)
    if form == "packed":
        written = write_packed(workload(), program, tmp_path / "set")
        packed = PackedSet(tmp_path / "set")
        assert list(packed) == list(traces)
        read = {rank: packed[rank] for rank in some}
    else:
        written = write_workload(workload(), program, tmp_path, compressed=form == "compressed")
        end = "et.zst" if form == "compressed" else "et"
        read = {rank: chakra_et.read(tmp_path / f"trace.{rank}.{end}") for rank in some}
        assert len(list(tmp_path.glob(f"*.{end}"))) == len(traces)
    assert read == {rank: traces[rank] for rank in some}
    assert written.nodes == sum(len(trace.nodes) for trace in traces.values())
    assert written.edges == sum(len(trace.edges) for trace in traces.values())
    assert written.programs == (1 if program is ring else 6)


def test_unpacking_gives_the_files_that_writing_gives(tmp_path: Path) -> None:
    write_packed(Workload(tp=2, dp=2, pp=2), pipeline, tmp_path / "set")
    write_workload(Workload(tp=2, dp=2, pp=2), pipeline, tmp_path / "plain")
    made = PackedSet(tmp_path / "set").unpack(tmp_path / "some", [1, 6])
    assert [file.name for file in made] == ["comm_groups.json", "trace.1.et", "trace.6.et"]
    for file in made[1:]:
        assert file.read_bytes() == (tmp_path / "plain" / file.name).read_bytes()
    groups, plain = made[0].read_bytes(), (tmp_path / "plain" / made[0].name).read_bytes()
    assert msgspec.json.decode(groups) == msgspec.json.decode(plain)
    with pytest.raises(chakra_et.ChakraError, match="no rank 8"):
        PackedSet(tmp_path / "set").unpack(tmp_path / "none", [8])
    assert not (tmp_path / "none").exists()


def test_written_sets_have_no_findings(tmp_path: Path) -> None:
    write_workload(Workload(tp=2, dp=2, pp=2), pipeline, tmp_path)
    result = chakra_et.validate(tmp_path, "astra-sim")
    assert not result.outcomes
    assert {p.name for p in tmp_path.iterdir()} == {
        ".chakra-et.json", "comm_groups.json", "manifest.json",
        *(f"trace.{rank}.et" for rank in range(8)),
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------
# What is refused, and where the error points


def _two(first: Program, second: Program) -> Program:
    return lambda rank: (first if rank.id == 0 else second)(rank)


BROKEN: dict[str, tuple[Program, str]] = {
    "no such group": (lambda r: r.all_reduce("up", 4), "no groups called 'up'. There are rank"),
    "no such axis": (lambda r: r.peer(tp=1), "no axis 'tp'. There are rank"),
    "no such place": (lambda r: r.peer_at(rank=2), "place 2 of axis 'rank'. It has 2 places"),
    "no such rank": (lambda r: r.send(5, 4), "no rank 5. Ranks go from 0 to 1"),
    "to itself": (lambda r: r.send(r.peer(rank=2), 4), "rank 0 would send to itself"),
    "a copy to itself": (lambda r: r.send(1, 4), "rank 1 would send to itself"),
    "negative size": (lambda r: r.all_reduce("rank", -4), "a size of -4 bytes"),
    "part of a byte": (lambda r: r.all_reduce("rank", 1.5), "a size of 1.5 bytes"),
    "negative time": (lambda r: r.compute("x", duration_ns=-1), "a duration of -1 ns"),
    "no such type": (lambda r: r.tensor("x", (1,), "int3"), "no type 'int3'. It is one of"),
    "negative shape": (lambda r: r.tensor("x", (-1,)), r"invalid shape: \(-1,\)"),
    "unknown attribute": (
        lambda r: r.compute("x", attributes={"mine": 1}), "no attribute 'mine' in the registry",
    ),
    "no such operation": (lambda r: r.compute("x", after=99), "an operation of another rank"),
    "lost message": (
        lambda r: r.send(r.peer(rank=1), 4),
        "rank 0 sends 4 bytes with tag 0 to rank 1, which receives no such message",
    ),
    "other size": (
        _two(lambda r: r.send(1, 4), lambda r: r.receive(0, 8)),
        "rank 0 sends 4 bytes with tag 0 to rank 1, which receives no such message",
    ),
    "nobody sends": (
        _two(lambda r: None, lambda r: r.receive(0, 8)),
        "rank 1 receives 8 bytes with tag 0 from rank 0, which sends no such message",
    ),
    "other collective": (
        _two(lambda r: r.all_reduce("rank", 4), lambda r: r.all_gather("rank", 4)),
        "collective 0 of group 'rank' is ALL_REDUCE of 4 bytes on rank 0 and ALL_GATHER",
    ),
    "one collective less": (
        _two(lambda r: r.all_reduce("rank", 4), lambda r: None),
        "is ALL_REDUCE of 4 bytes on rank 0 and none on rank 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "says"), BROKEN.values(), ids=BROKEN)
def test_errors_name_the_line_of_the_caller(program: Program, says: str) -> None:
    with pytest.raises(BuildError, match=says) as caught:
        Workload(rank=2).traces(program)
    assert caught.value.path == Path(__file__)
    line = int((caught.value.place or "").removeprefix("line "))
    assert "lambda r" in Path(__file__).read_text().splitlines()[line - 1]


def test_operations_of_another_rank_are_no_dependencies() -> None:
    kept: list[int] = []

    def program(rank: Rank) -> None:
        kept.append(rank.compute("x", after=kept, flops=rank.id))

    with pytest.raises(BuildError, match="an operation of another rank"):
        Workload(rank=2).traces(program)


def test_groups_are_refused_that_are_none() -> None:
    workload = Workload(tp=2, dp=2)
    for ranks, says in (
        ([[0, 1], [2]], r"groups of \[1, 2\] ranks in one family"),
        ([], "groups of no ranks"),
        ([[0, 1], [1, 2]], "a rank is in two groups"),
        ([[3, 4]], "a group with rank 4. Ranks go from 0 to 3"),
    ):
        with pytest.raises(BuildError, match=says):
            workload.groups("x", ranks=ranks)
    with pytest.raises(BuildError, match="there are groups of that name"):
        workload.groups("tp", axes=("tp",))
    with pytest.raises(BuildError, match="no axis 'pp'"):
        workload.groups("x", axes=("pp",))
    workload.traces(lambda rank: None)
    with pytest.raises(BuildError, match="the programs have begun"):
        workload.groups("late", axes=("tp",))
    with pytest.raises(BuildError, match="axis 'tp' has 0 ranks"):
        Workload(tp=0)


def test_a_directory_with_files_of_a_larger_set_is_refused(tmp_path: Path) -> None:
    write_workload(Workload(rank=4), ring, tmp_path)
    with pytest.raises(chakra_et.OutputError, match=r"files of another run are here \(trace\.2"):
        write_workload(Workload(rank=2), ring, tmp_path)
    write_workload(Workload(rank=2), ring, tmp_path, force=True)
    assert sorted(path.name for path in tmp_path.glob("*.et")) == ["trace.0.et", "trace.1.et"]


def test_a_program_that_fails_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(BuildError):
        write_workload(Workload(rank=2), lambda rank: rank.send(1, 1), tmp_path / "out")  # type: ignore[arg-type,return-value]
    assert not (tmp_path / "out").exists()


def test_damaged_packed_sets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "set"
    write_packed(Workload(rank=4), ring, path)
    whole = path.read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text").write_bytes(b"no set")
    for name in ("cut", "text"):
        with pytest.raises(chakra_et.FormatError, match="not a packed set"):
            PackedSet(tmp_path / name)
    with pytest.raises(chakra_et.ChakraError, match="cannot be read"):
        PackedSet(tmp_path / "absent")
    at = whole.index(b"nodes.0.zst") + 40
    path.write_bytes(whole[:at] + bytes(9) + whole[at + 9 :])
    with pytest.raises(chakra_et.FormatError, match="template 0: damaged"):
        PackedSet(path).file(0)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_damage_to_a_packed_set_is_found_or_harmless(
    at: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "set"
    write_packed(Workload(rank=3), ring, path)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    whole = Workload(rank=3).traces(ring)
    path.write_bytes(data)
    try:
        found = dict(PackedSet(path))
    except chakra_et.ChakraError:
        return
    assert found == {rank: whole[rank] for rank in found}


def test_a_packed_set_is_as_good_as_its_directory(tmp_path: Path) -> None:
    write_packed(Workload(tp=2, dp=2, pp=2), pipeline, tmp_path / "set")
    traces = Workload(tp=2, dp=2, pp=2).traces(pipeline)
    assert chakra_et.read(tmp_path / "set" / "trace.5.et") == traces[5]
    result = chakra_et.validate(tmp_path / "set")
    assert result.traces == 8
    assert not result.outcomes
    with pytest.raises(chakra_et.ChakraError, match="no such file in the archive"):
        chakra_et.read(tmp_path / "set" / "trace.8.et")
