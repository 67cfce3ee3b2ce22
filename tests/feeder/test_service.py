"""The service, over pipes and over gRPC: the same order, limits, and partners that vanish."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from feeder_traces import N, random_nodes, reference_order, trace
from places import ROOT

from chakra_et.converters.et.wire import varint
from chakra_et.feeder import Code, Feeder, FeederError, Next, Options
from chakra_et.feeder.client import PipeChannel, RemoteFeeder
from chakra_et.feeder.messages import OptionsMessage, Reply, Request
from chakra_et.feeder.session import Limits, Session
from chakra_et.feeder.stdio import read_frame, serve, write_frame
from chakra_et.files import read, write
from chakra_et.model import EdgeKind

CHAKRA = [sys.executable, "-m", "chakra_et.cli"]
GRAPHS = int(os.environ.get("CHAKRA_ET_ROUNDS", "2000")) // 4
DIAMOND = [N(0), N(1, [0]), N(2, [0]), N(3, [1, 2], name="last")]


class LocalChannel:
    """A session in this process, through the bytes of its messages."""

    def __init__(self, data: bytes, limits: Limits | None = None) -> None:
        self.session = Session({0: data}, Options(), limits or Limits())
        self.replies: list[bytes] = []

    def send(self, request: Request) -> None:
        reply = self.session.answer(Request.decode(request.encode()))
        self.replies.append(reply.encode())

    def receive(self) -> Reply:
        return Reply.decode(self.replies.pop(0))

    def close(self) -> None:
        pass


def drained(feeder: RemoteFeeder, batch: int) -> list[int]:
    """Take what is ready, finish it, and so on."""
    order = []
    while True:
        answer, nodes = feeder.take_many(batch)
        if not nodes:
            assert answer is Next.FINISHED
            return order
        order += [node.id for node in nodes]
        feeder.done_many(node.id for node in nodes)


def test_run_and_calls_mix() -> None:
    feeder = RemoteFeeder(LocalChannel(trace(DIAMOND)), batch=2)
    nodes = iter(feeder)
    assert next(nodes).id == 0
    feeder = RemoteFeeder(LocalChannel(trace([*DIAMOND, N(4, [9]), N(9, [4])])), batch=3)
    with pytest.raises(FeederError, match="cycle: 4 waits for 9"):
        assert [node.id for node in feeder] == [0, 1, 2, 3]
    channel = LocalChannel(trace(DIAMOND))
    for request in (Request(take=[0]), Request(next=9, run=1), Request(done=[0])):
        channel.send(request)
    answers = [channel.receive() for _ in range(3)]
    assert answers[1].nodes is not None
    assert (answers[1].nodes.id, answers[1].next) == ([], Next.PENDING)
    channel.send(Request(next=2, run=1))
    channel.send(Request(ready=9, count=1))
    told = channel.receive(), channel.receive()
    assert told[0].nodes is not None
    assert told[0].nodes.id == [1, 2]
    assert told[1].ready == [3]
    channel.send(Request(restart=2, next=1, run=1))
    first = channel.receive().nodes
    assert first is not None
    assert first.id == [0]


def test_calls_and_errors() -> None:
    feeder = RemoteFeeder(LocalChannel(trace(DIAMOND)), options=Options(window=10))
    assert feeder.ready() == [0]
    assert feeder.take(0).name == ""
    feeder.done(0)
    assert feeder.ready() == [1, 2]
    assert feeder.counts().done == 1
    feeder.take(2)
    feeder.push_back(2)
    with pytest.raises(FeederError, match="node 3 is not ready: it is waiting") as caught:
        feeder.take(3)
    assert (caught.value.code, caught.value.node) == (Code.NOT_READY, 3)
    assert '3 "last" waits for 1 (ready), 2 (ready)' in feeder.blocked()
    feeder.reset()
    assert drained(feeder, 10) == [0, 1, 2, 3]
    feeder.rewind()
    assert drained(feeder, 10) == [0, 1, 2, 3]


def test_replies_are_bounded() -> None:
    nodes = [N(i, name="x" * 100) for i in range(100)]
    channel = LocalChannel(trace(nodes), Limits(batch=50, reply_bytes=1000))
    channel.send(Request(next=1 << 40))
    reply = channel.receive()
    assert reply.nodes is not None
    assert len(reply.nodes.id) == 10
    assert reply.next == 0
    channel.send(Request(take=list(range(20, 90)), next=5))
    reply = channel.receive()
    assert reply.nodes is not None
    assert reply.nodes.id == list(range(20, 30))  # the first of them, and room for no other
    channel.send(Request(count=1))
    counts = channel.receive().counts
    assert counts is not None
    assert counts.taken == 20


def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    path.write_bytes(trace([N(i, name="x" * 100) for i in range(1000)]))
    session = Session({0: path}, Options(), Limits())
    assert session.answer(Request(next=1)).nodes is not None
    os.truncate(path, 5000)
    error = session.answer(Request(next=1)).error
    assert error is not None
    assert error.code == Code.IO
    assert "was shortened" in error.message
    reopened = session.answer(Request(open=OptionsMessage())).error
    assert reopened is not None
    assert reopened.code == Code.TRUNCATED


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request(rank=7), Code.IO),
        (Request(open=OptionsMessage(order=9)), Code.INVALID_OPTION),
        (Request(open=OptionsMessage(gate=["magic"])), Code.INVALID_OPTION),
        (Request(done=[3]), Code.NOT_TAKEN),
    ],
)
def test_bad_requests(request_: Request, code: Code) -> None:
    channel = LocalChannel(trace(DIAMOND))
    channel.send(request_)
    error = channel.receive().error
    assert error is not None
    assert error.code == code


def test_bad_frames_end_with_an_answer() -> None:
    for data, code in (
        (varint(5) + b"\xff\xff\xff\xff\xff", Code.MALFORMED),
        (varint(1 << 30), Code.TOO_LARGE),
        (b"\xff" * 11, Code.MALFORMED),
        (varint(9) + b"x", Code.TRUNCATED),
    ):
        out = io.BytesIO()
        session = Session({0: trace(DIAMOND)}, Options(), Limits())
        serve(session, io.BytesIO(data), out, 1 << 20)
        out.seek(0)
        answer = read_frame(out, 1 << 20)
        assert answer is not None
        error = Reply.decode(answer).error
        assert error is not None
        assert error.code == code


def test_pipes(tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    path.write_bytes(trace(DIAMOND))
    command = [*CHAKRA, "feed", str(path), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with RemoteFeeder(PipeChannel(process)) as feeder:
            assert drained(feeder, 10) == [0, 1, 2, 3]
        assert process.returncode == 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        feeder = RemoteFeeder(PipeChannel(process))
        feeder.counts()
        process.kill()
        process.wait()
        with pytest.raises(FeederError, match="has ended"):
            feeder.counts()
        feeder.close()


def test_an_et_in_json_is_served_as_well(tmp_path: Path) -> None:
    """Its nodes are no messages; a trace in memory has none either."""
    (tmp_path / "t.0.et").write_bytes(trace(DIAMOND))
    write(read(tmp_path / "t.0.et"), tmp_path / "t.0.json")
    for source in (tmp_path / "t.0.json", read(tmp_path / "t.0.et")):
        out = io.BytesIO()
        data = io.BytesIO()
        write_frame(data, Request(next=10).encode())
        data.seek(0)
        serve(Session({0: source}, Options(), Limits()), data, out, 1 << 20)
        out.seek(0)
        reply = Reply.decode(read_frame(out, 1 << 20) or b"")
        assert reply.nodes is not None
        assert reply.nodes.id == [0]
        assert reply.nodes.message[0] in trace(DIAMOND)


def test_the_client_in_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    remote = pytest.importorskip("chakra_et.feeder.remote")
    page = (ROOT / "docs" / "feeder.md").read_text()
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "GrpcChannel" in c)
    server = remote.Server({0: trace(DIAMOND)})
    server.start()
    try:
        exec(code.replace("127.0.0.1:5151", server.address), {})
    finally:
        server.stop()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list("0123")


def test_messages_are_those_of_the_schema() -> None:
    """The hand-written codec and the generated code read each other."""
    feeder_pb2 = pytest.importorskip("chakra_et.proto.feeder_pb2")
    mine = Request(
        tag=1 << 60, rank=3, open=OptionsMessage(order=1, gate=["data"], window=9, repeat=2),
        restart=2, done=[1, 300], push_back=[0], take=[5], next=7, run=1, ready=2, blocked=3,
        count=1,
    )  # fmt: skip
    theirs = feeder_pb2.Request.FromString(mine.encode())
    assert theirs.open.gate == ["data"]
    assert list(theirs.done) == [1, 300]
    assert Request.decode(theirs.SerializeToString()) == mine
    channel = LocalChannel(trace(DIAMOND))
    for request in (Request(next=2, count=1, ready=5, blocked=2), Request(take=[77])):
        channel.send(request)
        reply = Reply.decode(channel.replies[0])
        theirs = feeder_pb2.Reply.FromString(channel.replies.pop(0))
        assert Reply.decode(theirs.SerializeToString()) == reply
        assert theirs.error.message == (reply.error.message if reply.error else "")


# gRPC.


@pytest.fixture
def remote() -> Any:
    pytest.importorskip("grpc")
    from chakra_et.feeder import remote

    return remote


@pytest.fixture
def server(remote: Any) -> Iterator[Any]:
    wide = trace([N(i, name=f"op {i}") for i in range(2000)])
    limits = Limits(sessions=3, idle_s=1.0, batch=500)
    served = remote.Server({0: trace(DIAMOND), 1: wide}, limits=limits)
    served.start()
    yield served
    served.stop(0)


def settles(condition: Any, seconds: float = 20.0) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def test_grpc_order_and_ranks(remote: Any, server: Any) -> None:
    with RemoteFeeder(remote.GrpcChannel(server.address)) as feeder:
        assert drained(feeder, 10) == [0, 1, 2, 3]
    with RemoteFeeder(remote.GrpcChannel(server.address), rank=1) as feeder:
        assert [node.id for node in feeder] == list(range(2000))
    with (
        RemoteFeeder(remote.GrpcChannel(server.address)) as one,
        RemoteFeeder(remote.GrpcChannel(server.address)) as other,
    ):
        assert one.next()[1].id == 0  # type: ignore[union-attr]
        assert other.next()[1].id == 0  # type: ignore[union-attr]
    assert settles(lambda: server.sessions == 0)


def test_grpc_order_on_random_graphs(remote: Any) -> None:
    """One server, one channel, a graph for each rank; in batches of a run and call by call."""
    rng = random.Random("service")
    graphs = [random_nodes(rng, rng.randrange(14), rng.choice([1, 2, 30])) for _ in range(GRAPHS)]
    served = remote.Server({rank: trace(nodes) for rank, nodes in enumerate(graphs)})
    served.start()
    channel = remote.GrpcChannel(served.address)
    for rank, nodes in enumerate(graphs):
        wanted = reference_order(nodes)
        feeder = RemoteFeeder(channel, rank, batch=rng.choice([1, 3, 100]))
        assert [node.id for node in feeder] == wanted
        feeder.reset()
        assert drained(feeder, 1) == wanted
    channel.close()
    served.stop(0)


def test_grpc_health(remote: Any, server: Any) -> None:
    assert remote.is_healthy(server.address)
    assert not remote.is_healthy("127.0.0.1:1", timeout_s=0.5)


def test_grpc_session_limit(remote: Any, server: Any) -> None:
    feeders = [RemoteFeeder(remote.GrpcChannel(server.address)) for _ in range(3)]
    for feeder in feeders:
        feeder.counts()
    with pytest.raises(FeederError, match="RESOURCE_EXHAUSTED"):
        RemoteFeeder(remote.GrpcChannel(server.address)).counts()
    feeders.pop().close()
    assert settles(lambda: server.sessions == 2)
    with RemoteFeeder(remote.GrpcChannel(server.address)) as feeder:
        assert feeder.counts().ready == 1
    for feeder in feeders:
        feeder.close()


def test_grpc_deadline_and_idle(remote: Any, server: Any) -> None:
    late = RemoteFeeder(remote.GrpcChannel(server.address, timeout_s=0.3))
    late.counts()
    time.sleep(0.5)
    with pytest.raises(FeederError, match="DEADLINE_EXCEEDED"):
        late.counts()
    idle = RemoteFeeder(remote.GrpcChannel(server.address))
    idle.counts()
    assert settles(lambda: server.sessions == 0)
    with pytest.raises(FeederError, match="CANCELLED"):
        idle.counts()


def test_grpc_slow_client(remote: Any, server: Any) -> None:
    """A client that asks a lot and reads nothing holds up nobody, and loses nothing."""
    slow = remote.GrpcChannel(server.address)
    for tag in range(300):
        slow.send(Request(tag=tag, rank=1, next=10, done=[]))
    with RemoteFeeder(remote.GrpcChannel(server.address)) as feeder:
        assert drained(feeder, 10) == [0, 1, 2, 3]
    ids: list[int] = []
    for tag in range(300):
        reply = slow.receive()
        assert reply.tag == tag
        ids += reply.nodes.id if reply.nodes else []
    assert ids == list(range(2000))
    slow.close()


def test_grpc_bad_request(remote: Any, server: Any) -> None:
    import grpc

    with grpc.insecure_channel(server.address) as channel:
        feed = channel.stream_stream(
            f"/{remote.SERVICE}/Feed", request_serializer=bytes, response_deserializer=bytes
        )
        with pytest.raises(grpc.RpcError) as caught:
            list(feed(iter([b"\xff\xff"])))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as caught:
            list(feed(iter([b"\x00" * (5 << 20)])))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_grpc_stays_on_loopback(remote: Any) -> None:
    with pytest.raises(FeederError, match="other machines"):
        remote.Server({0: b""}, "0.0.0.0:0")
    with pytest.raises(FeederError, match="cannot listen"):
        remote.Server({0: b""}, "unix:/nowhere/at/all")


KILLED_CLIENT = """
import sys, time
from chakra_et.feeder.client import RemoteFeeder
from chakra_et.feeder.remote import GrpcChannel
feeder = RemoteFeeder(GrpcChannel(sys.argv[1]), rank=1)
feeder.take_many(5)
print("there", flush=True)
time.sleep(60)
"""


def test_grpc_killed_client(remote: Any) -> None:
    served = remote.Server({1: trace([N(i) for i in range(9)])}, limits=Limits(idle_s=1000))
    served.start()
    command = [sys.executable, "-c", KILLED_CLIENT, served.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"there\n"
        assert served.sessions == 1
        client.kill()
    assert settles(lambda: served.sessions == 0)
    with RemoteFeeder(remote.GrpcChannel(served.address), rank=1) as feeder:
        assert feeder.counts().ready == 9
    served.stop(0)


def test_grpc_killed_server(remote: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    path.write_bytes(trace(DIAMOND))
    command = [*CHAKRA, "feed", str(path), "--grpc", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rpartition(" ")[2].strip()
        feeder = RemoteFeeder(remote.GrpcChannel(address))
        assert feeder.counts().ready == 1
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with pytest.raises(FeederError, match="UNAVAILABLE"):
            feeder.counts()
        feeder.close()


def test_grpc_sigterm_ends_a_server_with_open_sessions(remote: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.0.et"
    path.write_bytes(trace(DIAMOND))
    command = [*CHAKRA, "feed", str(path), "--grpc", "127.0.0.1:0", "--idle", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rpartition(" ")[2].strip()
        feeder = RemoteFeeder(remote.GrpcChannel(address))
        assert feeder.counts().ready == 1
        process.terminate()
        time.sleep(0.2)
        process.terminate()  # as of those that signal the process and its group
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        assert process.stderr.read() == ""
        feeder.close()


def test_real_traces_in_the_same_order(remote: Any, data: Path) -> None:
    paths = dict(enumerate(sorted((data / "et").rglob("*.et"))))
    broken = len(paths)
    paths[broken] = data / "et" / "broken_graph.0.et.gz"
    served = remote.Server(paths)
    served.start()
    for rank, path in paths.items():
        options = Options()
        if rank == broken:
            kinds = frozenset({EdgeKind.DATA})
            options = Options(missing_parent="drop", self_edge="drop", gate=kinds)
        wanted = [node.id for node in Feeder(path, options=options)]
        with RemoteFeeder(remote.GrpcChannel(served.address), rank, options=options) as feeder:
            assert [node.id for node in feeder] == wanted
            feeder.reset()
            assert drained(feeder, 1) == wanted
    served.stop(0)
