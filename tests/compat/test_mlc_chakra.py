"""mlc-chakra 1.0.0 reads what we write.

It runs in an environment of its own, which the first run makes (tools/mlc_env.py). The pairs are
those of the data directory (`CHAKRA_ET_DATA`, else `../shared/data` beside the repository), or the
examples where there is none, then a made-up run with NCCL collectives, and tiny ones.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlc_env
import pairs
import pytest
import traces_index

import chakra_et
from chakra_et.definitions import NodeType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Columns of the model that a file keeps as attributes.
COLUMNS = ("edge_kinds", "start_time_ns", "duration_ns")


# -- pairs ---------------------------------------------------------------------------------------


def data_directory() -> Path:
    named = os.environ.get("CHAKRA_ET_DATA")
    if named:
        return Path(named)
    beside = ROOT.parent / "shared" / "data"
    return beside if beside.is_dir() else ROOT / "examples"


def recorded_pairs() -> Iterator[tuple[str, Path, Path]]:
    """Pairs of rank 0, or without a rank, of every run in the data directory."""
    base = data_directory()
    for host in traces_index.trace_files(base, "*/host*.json*"):
        device = host.with_name(host.name.replace("host", "device", 1))
        rank = host.name.split(".")[1]
        if device.exists() and rank in ("0", "json"):
            yield str(host.parent.relative_to(base)), host, device


def host_node(node: int, name: str, parent: int, rf_id: int, **more: Any) -> dict[str, Any]:
    nothing: dict[str, list[Any]] = {"values": [], "shapes": [], "types": [], "strides": []}
    kinds = {"rf_id": "uint64", "fw_parent": "uint64", "seq_id": "int64", "scope": "uint64"}
    kinds |= {"tid": "uint64", "fw_tid": "uint64", "op_schema": "string"}
    kinds |= {"kernel_backend": "string", "kernel_file": "string", "tensor_range": "string"}
    values = {key: "" if kind == "string" else 0 for key, kind in kinds.items()}
    values |= {"rf_id": rf_id, "seq_id": -1, "tid": 1, "op_schema": f"{name}() -> ()"}
    attributes = [{"name": k, "type": kinds[k], "value": v} for k, v in values.items()]
    outputs = {
        "values": [[10 * node, 10 * node + 1, 0, 4, 4, "cuda:0"]],
        "shapes": [[4]],
        "types": ["Tensor(float)"],
        "strides": [[1]],
    }
    found = {"id": node, "name": name, "ctrl_deps": parent, "inputs": nothing, "outputs": outputs}
    return {**found, "attrs": attributes, **more}


def event(cat: str, name: str, tid: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    pid = 0 if cat == "kernel" else 77
    place = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**place, "args": args}


def tiny(kernels: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two ops, one after the other; with `kernels`, each launches one."""
    nodes = [host_node(i, name, 2, i - 2) for i, name in ((3, "aten::mul"), (4, 'aten::"add"'))]
    root = host_node(1, "[pytorch|profiler|execution_trace|process]", 1, 0)
    thread = host_node(2, "[pytorch|profiler|execution_trace|thread]", 1, 0)
    host = {
        "schema": "1.1.1-chakra.0.0.4",
        "pid": 77,
        "time": "2026-01-01 00:00:00",
        "start_ts": 1,
        "nodes": [thread, *nodes, root],
        "finish_ts": 2,
    }
    events = []
    for i, node in enumerate(nodes, 1):
        ts = 1000.0 + 20 * i
        ids = {"External id": i, "Record function id": i}
        events.append(event("cpu_op", node["name"], 77, ts, 10.5, **ids))
        if kernels:
            launch = {"External id": i, "correlation": 100 + i}
            where = {"device": 0, "stream": 7}
            events.append(event("cuda_runtime", "cudaLaunchKernel", 77, ts + 2, 3.25, **launch))
            events.append(event("kernel", f"kernel_{i}", 7, ts + 8, 4.125, **launch, **where))
    device = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": events}
    return host, device


@dataclass
class Converted:
    file: Path
    trace: Any  # as chakra_et reads the file


Maker = Callable[[Path], tuple[Path, Path]]


def _recorded(host: Path, device: Path) -> Maker:
    return lambda directory: (host, device)


def _made(directory: Path) -> tuple[Path, Path]:
    facts = pairs.make_pair(1500, 1, directory)
    return facts.host, facts.device


def _tiny(kernels: bool) -> Maker:
    def make(directory: Path) -> tuple[Path, Path]:
        paths = directory / "host.json", directory / "device.json.gz"
        host, device = (json.dumps(x) for x in tiny(kernels))
        paths[0].write_text(host)
        paths[1].write_bytes(gzip.compress(device.encode()))
        return paths

    return make


MAKERS: dict[str, Maker] = {
    **{name: _recorded(host, device) for name, host, device in recorded_pairs()},
    "made": _made,
    "tiny-host-only-work": _tiny(kernels=False),
    "tiny-with-kernels": _tiny(kernels=True),
}


@pytest.fixture(scope="session")
def mlc() -> Path:
    """The Python of mlc-chakra's environment."""
    found: Path = mlc_env.mlc_python()
    return found


@pytest.fixture(scope="module", params=MAKERS)
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Converted:
    directory = tmp_path_factory.mktemp("pair")
    host, device = MAKERS[request.param](directory)
    file = directory / "out.0.et"
    chakra_et.convert(host=host, device=device, output=file)
    return Converted(file, chakra_et.read(file))


# -- its command ---------------------------------------------------------------------------------


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that the jsonizer writes one after the other, with nothing between."""
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        found, at = decoder.raw_decode(text, at)
        yield found
        while at < len(text) and text[at].isspace():
            at += 1


def json_attributes(owner: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a jsonizer object: 64-bit integers are text there."""
    found = {}
    for attribute in owner.get("attr", ()):
        ((kind, value),) = ((k, v) for k, v in attribute.items() if k not in ("name", "docString"))
        found[attribute["name"]] = int(value) if kind.endswith("64Val") else value
    return found


def test_jsonizer_sees_the_same_nodes(mlc: Path, converted: Converted, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    command = [mlc_env.command("chakra_jsonizer"), "--input_filename", converted.file]
    subprocess.run([*command, "--output_filename", output], check=True, cwd=tmp_path)
    head, *nodes = objects(output.read_text())
    assert head["version"]
    assert len(nodes) == len(converted.trace.nodes)
    for theirs, ours in zip(nodes, converted.trace.nodes, strict=True):
        assert theirs.get("name", "") == ours.name
        assert theirs.get("type", "INVALID_NODE") == f"{ours.type.name}_NODE"
        if ours.type is NodeType.COMM_COLL:
            attributes = json_attributes(theirs)
            for name in ("comm_type", "comm_size"):
                assert attributes.get(name) == ours.attributes.get(name), ours


# -- its classes ---------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value of ours as `mlc_nodes.py` prints it."""
    if isinstance(value, tuple):
        return [plain(x) for x in value]
    return value.hex() if isinstance(value, bytes) else value


def io_texts(io: Any) -> list[str]:
    return ["", "", ""] if io is None else [part.decode() for part in io[:3]]


def assert_same_node(theirs: dict[str, Any], ours: Any) -> None:
    assert theirs["id"] == ours.id
    assert theirs["name"] == ours.name
    assert theirs["type"] == int(ours.type)
    assert theirs["ctrl_deps"] == ours.ctrl_deps
    assert theirs["data_deps"] == ours.data_deps
    assert theirs["inputs"] == io_texts(ours.inputs)
    assert theirs["outputs"] == io_texts(ours.outputs)
    written: dict[str, Any] = {}
    for name, _, value in theirs["attributes"]:
        written.setdefault(name, value)
    columns = {name: written.pop(name, None) for name in COLUMNS}
    assert written == {name: plain(value) for name, value in ours.attributes.items()}
    assert_time(theirs["duration_micros"], columns["duration_ns"], ours.duration_ns)
    if ours.start_ns is not None:
        assert_time(theirs["start_micros"], columns["start_time_ns"], ours.start_ns)


def assert_time(micros: int, exact: int | None, ns: int) -> None:
    """The field of the schema is the time rounded; the attribute, where there is one, is exact."""
    assert abs(1000 * micros - ns) <= 500
    assert (1000 * micros if exact is None else exact) == ns


def test_its_classes_read_every_field(mlc: Path, converted: Converted) -> None:
    command = [mlc, HERE / "mlc_nodes.py", converted.file]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    head, *nodes = map(json.loads, done.stdout.splitlines())
    assert head["version"]
    metadata = {name: value for name, _, value in head["attributes"]}
    assert {name: converted.trace.metadata.get(name) for name in metadata} == metadata
    assert len(nodes) == len(converted.trace.nodes)
    for theirs, ours in zip(nodes, converted.trace.nodes, strict=True):
        assert_same_node(theirs, ours)


def test_the_made_run_has_its_collectives(tmp_path: Path) -> None:
    """What is compared above holds NCCL collectives, with their sizes."""
    facts = pairs.make_pair(1500, 1, tmp_path)
    chakra_et.convert(host=facts.host, device=facts.device, output=tmp_path / "out.et")
    found = chakra_et.read(tmp_path / "out.et").nodes.where(type=NodeType.COMM_COLL)
    assert len(found) == facts.collectives > 0
    layer = 12 * pairs.DIM**2 + 13 * pairs.DIM  # parameters, of two bytes
    assert {node.attributes["comm_size"] for node in found} == {2 * layer}
