"""Measure the feeders: load and drain of generated traces, time and memory per node.

    python tools/bench_feeder.py                        # ours: C++ (built with c++ -O3) and Python
    python tools/bench_feeder.py --peer v3=./v3drain --peer mlc=./mlcdrain
    python tools/bench_feeder.py --drain TRACE          # Python alone, without its start

A peer is any program that takes a trace file, loads it, takes and finishes every node, reading its
type, duration and is_cpu_op, and prints `nodes=N load=SECONDS drain=SECONDS` on one line. Peers
are not part of this repository. A program that needs more than `--limit` seconds of processor time
is stopped; the ratio says then that it is at least so many times slower. All programs run one after
the other, `--repeat` rounds, and the table shows medians, so that ratios within one table can be
trusted more than single figures; those of processor time more than those of time on the clock.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chakra_et.feeder.client import RemoteFeeder

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

HEADERS = ROOT / "chakra_et" / "feeder" / "cpp" / "include"
DRAIN = ROOT / "chakra_et" / "feeder" / "cpp" / "tools" / "drain.cpp"
MAPPING = ("c++", "python")  # these map the file: its pages are not counted as theirs
SHAPES = ("chain", "wide", "independent", "window", "fwd", "rand", "frand")


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def attribute(name: str, number: int, value: int | str) -> bytes:
    body = field(1, name.encode())
    if isinstance(value, str):
        body += field(number, value.encode())
    else:
        body += varint(number << 3) + varint(value)
    return field(10, body)


def fat_tail() -> bytes:
    """The nine attributes and the text of a node as PyTorch's converter writes them."""
    values = "[[7, 8, 0, 1024, 4, 'cuda:0'], [9, 10, 0, 1024, 4, 'cuda:0'], "
    values += "[5, 6, 0, 1, 4, 'cpu'], '<None>']"
    inputs = field(1, values.encode()) + field(2, b"[[32, 32], [32, 32], [], []]")
    inputs += field(3, b"['Tensor(float)', 'Tensor(float)', 'Tensor', 'None']")
    outputs = field(1, b"[[11, 12, 0, 1024, 4, 'cuda:0']]") + field(2, b"[[32, 32]]")
    outputs += field(3, b"['Tensor(float)']")
    numbers = ["rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "stream"]
    tail = field(8, inputs) + field(9, outputs)
    tail += b"".join(attribute(name, 9, 1) for name in numbers)
    return tail + attribute("op_schema", 29, "aten::mm(Tensor self, Tensor mat2) -> Tensor")


def parents_of(shape: str, node: int, rng: random.Random) -> list[int]:
    if node == 0 or shape == "independent":
        return []
    if shape == "chain":
        return [node - 1]
    if shape == "wide":
        return [0]
    low = max(0, node - 100) if shape in ("window", "fwd") else 0
    return sorted({rng.randrange(low, node) for _ in range(rng.randint(1, 3))})


def node_records(shape: str, count: int, fat: bool) -> Iterator[bytes]:
    rng = random.Random(f"{shape}-{count}")
    tail = fat_tail() if fat else b""
    is_cpu = [attribute("is_cpu_op", 27, flag) for flag in (0, 1)]
    for node in range(count):
        parents = b"".join(map(varint, parents_of(shape, node, rng)))
        record = (b"\x08" + varint(node) if node else b"") + field(2, b"aten::op_%d" % node)
        record += b"\x18\x04"
        record += field(5, parents) if parents else b""
        record += b"\x38" + varint(1 + node % 100) + tail + is_cpu[node % 3 == 0]
        yield varint(len(record)) + record


def write_trace(path: Path, shape: str, count: int, fat: bool = False) -> None:
    """Write a trace of `count` nodes; the shapes that begin with f have all references forward."""
    records = node_records(shape, count, fat)
    if shape in ("fwd", "frand"):
        records = reversed(list(records))
    with path.open("wb") as file:
        metadata = field(1, b"1.0.0")
        file.write(varint(len(metadata)) + metadata)
        file.writelines(records)


@dataclass
class Run:
    load: float
    drain: float
    cpu: float  # seconds of the whole process, start and end included
    peak: float  # MB of resident memory
    stopped: bool = False  # it reached the limit, and its times are only a lower bound


def run(command: list[str], trace: Path, nodes: int, limit: int = 0) -> Run:
    """Run one program in its own process and measure its time and peak memory from outside."""
    with tempfile.TemporaryFile("w+") as out:
        pid = os.posix_spawn(
            command[0],
            [*command, str(trace)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)],
        )
        if limit:
            resource.prlimit(pid, resource.RLIMIT_CPU, (limit, limit + 1))
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        text = out.read()
    found = re.search(r"nodes=(\d+) load=([\d.]+) drain=([\d.]+)", text)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    if limit and os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return Run(0.0, 0.0, cpu, peak, stopped=True)
    if status != 0 or found is None or int(found[1]) != nodes:
        raise SystemExit(f"{command[0]} failed on {trace.name} (status {status}): {text[:200]}")
    return Run(float(found[2]), float(found[3]), cpu, peak)


def build_drain(folder: Path) -> Path | None:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        print("no C++ compiler: the C++ feeder is left out", file=sys.stderr)
        return None
    program = folder / "drain"
    subprocess.run(
        [compiler, "-std=c++17", "-O3", "-I", str(HEADERS), str(DRAIN), "-o", str(program)],
        check=True,
    )
    return program


def programs(folder: Path, peers: list[str], skip_python: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if drain := build_drain(folder):
        found["c++"] = [str(drain)]
    if not skip_python:
        found["python"] = [sys.executable, str(Path(__file__).resolve()), "--drain"]
    for peer in peers:
        name, _, program = peer.partition("=")
        found[name] = [str(Path(program).resolve())]
    return found


def drain_in_python(trace: str) -> None:
    from time import perf_counter, process_time

    from chakra_et.feeder import Feeder

    cpu, start = process_time(), perf_counter()
    feeder = Feeder(trace)
    loaded = perf_counter()
    count = total = 0
    for node in feeder:
        total += node.type + node.duration_ns // 1000 + bool(node.is_cpu_op)
        count += 1
    end, cpu = perf_counter(), process_time() - cpu
    times = f"load={loaded - start:.4f} drain={end - loaded:.4f} cpu={cpu:.4f}"
    print(f"nodes={count} {times} nodes/cpu_s={count / cpu:.0f} sum={total}")


def remote_drain(trace: Path, nodes: int) -> None:
    """Print how fast a client gets the nodes from `chakra feed --grpc`, in each of its two ways."""
    from time import perf_counter, process_time

    from chakra_et.feeder.client import RemoteFeeder
    from chakra_et.feeder.remote import GrpcChannel

    command = [sys.executable, "-m", "chakra_et.cli", "feed", str(trace), "--grpc", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        address = server.stderr.readline().rpartition(" ")[2].strip()
        for way, drain in (("run", drain_run), ("take", drain_taking)):
            with RemoteFeeder(GrpcChannel(address)) as feeder:
                feeder.counts()  # the trace is loaded
                start, cpu = perf_counter(), process_time()
                count = drain(feeder)
                took, cpu = perf_counter() - start, process_time() - cpu
            assert count == nodes, (way, count)
            print(f"grpc {way:5}{nodes / took:10,.0f} nodes/s, the client's own time {cpu:.2f} s")
        server.terminate()


def drain_run(feeder: RemoteFeeder) -> int:
    """The order of a run: nodes stream in batches, and the next one is asked for ahead."""
    return sum(1 for _ in feeder)


def drain_taking(feeder: RemoteFeeder) -> int:
    """A round trip for each set of ready nodes: take all of them, finish them, and so on."""
    count = 0
    while True:
        _, nodes = feeder.take_many()
        if not nodes:
            return count
        count += len(nodes)
        feeder.done_many([node.id for node in nodes])


def baseline(command: list[str], folder: Path) -> float:
    """Peak memory of a program on an empty trace, in MB."""
    empty = folder / "empty.et"
    write_trace(empty, "chain", 1)
    return run(command, empty, 1).peak


def report(
    trace: Path, nodes: int, table: dict[str, list[str]], args: argparse.Namespace, folder: Path
) -> None:
    """Run every program on a trace, in turn, and print the medians."""
    size = trace.stat().st_size
    runs: dict[str, list[Run]] = {name: [] for name in table}
    for _ in range(args.repeat):
        for name, command in table.items():
            if not any(result.stopped for result in runs[name]):
                runs[name].append(run(command, trace, nodes, args.limit))
    print(f"\n{trace.stem}: {nodes:,} nodes of {size / nodes:.0f} bytes")
    heads = (
        "load s",
        "drain s",
        "sum s",
        "cpu s",
        "nodes/s",
        "peak MB",
        "B/node",
        "sum x",
        "cpu x",
    )
    print(" " * 10 + "".join(f"{head:>10}" for head in heads), flush=True)
    ours: Run | None = None
    for name, results in runs.items():
        found = median(results)
        if found.stopped:
            at_least = f", at least {found.cpu / ours.cpu:.0f} x" if ours else ""
            print(f"{name:10} stopped after {found.cpu:.0f} s of processor time{at_least}")
            continue
        both = found.load + found.drain
        mapped = size / 2**20 if name in MAPPING else 0.0
        per_node = (found.peak - mapped - baseline(table[name], folder)) * 2**20 / nodes
        ratios = ""
        if ours:
            ratios = f"{both / (ours.load + ours.drain):10.1f}{found.cpu / ours.cpu:10.1f}"
        ours = ours or found
        print(
            f"{name:10}{found.load:10.3f}{found.drain:10.3f}{both:10.3f}{found.cpu:10.2f}"
            f"{nodes / both:10,.0f}{found.peak:10.0f}{per_node:10.0f}{ratios}",
            flush=True,
        )


def median(results: list[Run]) -> Run:
    """The median of each figure; of runs that were stopped, the last."""
    if results[-1].stopped:
        return results[-1]
    return Run(
        *(statistics.median(getattr(r, name) for r in results) for name in
          ("load", "drain", "cpu", "peak"))
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="default: window")
    parser.add_argument("--fat", action="store_true", help="nodes of 444 bytes")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="SECONDS", help="of processor time for each run"
    )
    parser.add_argument("--remote", action="store_true", help="over gRPC too")
    parser.add_argument("--no-python", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the traces here")
    parser.add_argument("--drain", metavar="TRACE", help="only load and drain this, in Python")
    args = parser.parse_args()
    if args.drain:
        drain_in_python(args.drain)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        table = programs(folder, args.peer, args.no_python)
        for shape in args.shape or ["window"]:
            trace = folder / f"{shape}-{args.nodes}{'-fat' if args.fat else ''}.et"
            if not trace.exists():
                write_trace(trace, shape, args.nodes, args.fat)
            report(trace, args.nodes, table, args, folder)
            if args.remote:
                remote_drain(trace, args.nodes)


if __name__ == "__main__":
    main()
