"""The JSON Schemas, on real traces, on whole documents and on broken twins of these.

Real are the example traces, and every trace under the folder that the environment variable
CHAKRA_TRACES names, if it is set. Of a long trace only a sample is validated: its first and last
records, and an even spread between them.
"""

from __future__ import annotations

import copy
import gzip
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from chakra_et.definitions import Kind
from chakra_et.proto import et_def_pb2

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schema"
SAMPLE = 240


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMA / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


VALIDATORS = {name: validator(name) for name in ("host_trace", "kineto_trace", "et")}


def read(path: Path) -> Any:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


def sampled(records: list[Any]) -> list[Any]:
    if len(records) <= SAMPLE:
        return records
    third = SAMPLE // 3
    return records[:third] + records[third :: len(records) // third] + records[-third:]


def shortened(document: Any) -> Any:
    if isinstance(document, list):
        return sampled(document)
    return {
        key: sampled(value) if key in ("nodes", "traceEvents", "workload_graph") else value
        for key, value in document.items()
    }


def schema_for(document: Any) -> str:
    if isinstance(document, list) or "traceEvents" in document:
        return "kineto_trace"
    return "host_trace" if "schema" in document else "et"


def traces() -> list[Path]:
    folders = [ROOT / "examples"]
    if more := os.environ.get("CHAKRA_TRACES"):
        folders.append(Path(more))
    return sorted(path for folder in folders for path in folder.rglob("*.json*"))


@pytest.mark.parametrize("path", traces(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_real_traces_are_accepted(path: Path) -> None:
    document = shortened(read(path))
    VALIDATORS[schema_for(document)].validate(document)


FLAT = {
    "schema": "1.0.1",
    "nodes": [
        {
            "name": "aten::relu", "id": 3, "rf_id": 1, "parent": 2, "fw_parent": 0, "seq_id": -1,
            "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "",
            "inputs": [[4, 5, 0, 8, 4, "cpu"], 1.5, [True, "<None>"]],
            "input_shapes": [[2, 4], [], [[], []]],
            "input_types": ["Tensor(float)", "Double", "GenericList[Bool,None]"],
            "outputs": [], "output_shapes": [], "output_types": [],
        }
    ],
}  # fmt: skip
NESTED = {
    "schema": "1.1.1-chakra.0.0.4",
    "pid": 7,
    "time": "2026-01-01 00:00:00",
    "start_ts": 5,
    "nodes": [
        {
            "id": 3,
            "name": "record_param_comms",
            "ctrl_deps": 2,
            "inputs": {"values": [1], "shapes": [[]], "types": ["Int"], "strides": [[]]},
            "outputs": {"values": [], "shapes": [], "types": []},
            "attrs": [
                {"name": "rf_id", "type": "uint64", "value": 9},
                {"name": "seq_id", "type": "int64", "value": -1},
                {"name": "op_schema", "type": "string", "value": ""},
                {"name": "is_asynchronized_op", "type": "bool", "value": True},
                {"name": "of tomorrow", "type": "tensor", "value": [1]},
            ],
        }
    ],
    "finish_ts": 6,
}
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": "1704161511420306.491",
     "dur": 1.25, "args": {"External id": 1}},
    {"ph": "X", "cat": "Trace", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1,
     "dur": 2},
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 1, "s": "g"},
    {"ph": "s", "id": 5, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 2, "ts": 1},
    {"ph": "f", "id": "5", "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 1, "bp": "e"},
    {"ph": "C", "name": "GPU 0 Utilization", "pid": "GPU 0 Counters", "ts": 1, "args": {"v": 1}},
]  # fmt: skip
INTERVALS = [
    {"ph": "B", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 30},
]
KINETO = {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 1704067200000000000,
    "distributedInfo": {"rank": 0, "pg_config": [{"pg_name": "0", "ranks": "[0, 1]"}]},
    "traceEvents": EVENTS,
}
DOCUMENT = {
    "format": "chakra-et",
    "metadata": {"version": "1.0.0", "attr": [{"name": "pid", "uint64Val": "7"}]},
    "nodes": [
        {"name": "a", "type": "COMP_NODE", "durationMicros": "12"},
        {
            "id": "18446744073709551615",
            "type": 77,
            "ctrlDeps": ["0"],
            "dataDeps": ["0"],
            "inputs": {"values": "[]"},
            "attr": [
                {"name": "is_cpu_op", "boolVal": True},
                {"name": "involved_dim", "boolList": {"values": [True, False]}},
                {"name": "comm_size", "int64Val": "-1"},
                {"name": "ratio", "doubleVal": "NaN"},
                {"name": "raw", "bytesVal": "AAE="},
                {"name": "of tomorrow", "unknownFields": "qAYB"},
            ],
            "unknownFields": "oAYB",
        },
        {"id": "2", "type": "STORAGE_NODE", "storage": {"level": "STORAGE_LEVEL_FS", "fs": {}}},
        {"id": "3", "type": "DATA_OP_NODE", "dataOp": "DATA_OP_CHECKPOINT"},
    ],
}
FEEDER = {
    "workload_graph": [
        {"Id": 1, "Name": "a", "NodeType": 7, "data_deps": [], "comm_type": 0, "comm_size": 8}
    ]
}
WHOLE = {
    "flat": ("host_trace", FLAT),
    "nested": ("host_trace", NESTED),
    "events": ("kineto_trace", EVENTS),
    "kineto": ("kineto_trace", KINETO),
    "intervals": ("kineto_trace", INTERVALS),
    "document": ("et", DOCUMENT),
    "feeder": ("et", FEEDER),
}
ABSENT = object()


@pytest.mark.parametrize("name", WHOLE)
def test_whole_documents_are_accepted(name: str) -> None:
    schema, document = WHOLE[name]
    VALIDATORS[schema].validate(document)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("flat", ["schema"], ABSENT),
        ("flat", ["schema"], "newest"),
        ("flat", ["nodes"], {}),
        ("flat", ["nodes", 0, "id"], -1),
        ("flat", ["nodes", 0, "id"], "3"),
        ("flat", ["nodes", 0, "parent"], ABSENT),
        ("flat", ["nodes", 0, "parent"], [2]),
        ("flat", ["nodes", 0, "seq_id"], 0.5),
        ("flat", ["nodes", 0, "input_shapes", 0], "[2, 4]"),
        ("flat", ["nodes", 0, "input_types"], ABSENT),
        ("flat", ["nodes", 0, "attrs"], []),
        ("nested", ["nodes", 0, "ctrl_deps"], [2]),
        ("nested", ["nodes", 0, "ctrl_deps"], ABSENT),
        ("nested", ["nodes", 0, "attrs"], ABSENT),
        ("nested", ["nodes", 0, "attrs", 0, "value"], ABSENT),
        ("nested", ["nodes", 0, "attrs", 0, "value"], -1),
        ("nested", ["nodes", 0, "attrs", 0, "type"], "string"),
        ("nested", ["nodes", 0, "inputs", "types"], ABSENT),
        ("nested", ["nodes", 0, "inputs", "strides"], [1]),
        ("nested", ["start_ts"], "5"),
        ("events", [0, "ph"], "Z"),
        ("events", [0, "ts"], "soon"),
        ("events", [0, "ts"], None),
        ("events", [0, "dur"], ABSENT),
        ("events", [0, "tid"], ABSENT),
        ("events", [0, "args"], []),
        ("events", [2, "args"], ABSENT),
        ("events", [4, "id"], ABSENT),
        ("intervals", [0, "name"], ABSENT),
        ("intervals", [1, "ts"], ABSENT),
        ("kineto", ["traceEvents"], ABSENT),
        ("kineto", ["traceEvents", 0], "event"),
        ("kineto", ["baseTimeNanoseconds"], "0"),
        ("kineto", ["distributedInfo", "rank"], "0"),
        ("kineto", ["distributedInfo", "pg_config", 0, "ranks"], [-1]),
        ("document", ["format"], "et"),
        ("document", ["metadata"], ABSENT),
        ("document", ["nodes", 0, "type"], "COMP"),
        ("document", ["nodes", 0, "data_deps"], ["1"]),
        ("document", ["nodes", 0, "durationMicros"], "12.5"),
        ("document", ["nodes", 1, "id"], -1),
        ("document", ["nodes", 1, "attr", 0, "int64Val"], "1"),
        ("document", ["nodes", 1, "attr", 0, "boolVal"], 1),
        ("document", ["nodes", 1, "attr", 1, "boolList"], [True]),
        ("document", ["nodes", 1, "unknownFields"], "not base64"),
        ("document", ["nodes", 2, "dataOp"], 1),
        ("document", ["nodes", 2, "storage", "page"], {}),
        ("feeder", ["workload_graph", 0, "data_deps"], ABSENT),
        ("feeder", ["workload_graph", 0, "NodeType"], 8),
        ("feeder", ["workload_graph", 0, "Id"], "1"),
        ("feeder", ["format"], "chakra-et"),
    ],
)
def test_broken_twins_are_refused(name: str, path: list[Any], value: Any) -> None:
    schema, document = WHOLE[name]
    twin: Any = copy.deepcopy(document)
    place = twin
    for step in path[:-1]:
        place = place[step]
    if value is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert not VALIDATORS[schema].is_valid(twin)


def test_json_schema_names_the_fields_of_the_protobuf_code() -> None:
    schema: Any = VALIDATORS["et"].schema
    defs = schema["$defs"]
    for name, message in et_def_pb2.DESCRIPTOR.message_types_by_name.items():
        if name != "Tensor" and not name.endswith("List"):
            names = {field.json_name for field in message.fields}
            assert set(defs[name]["properties"]) == {*names, "unknownFields"}


def test_json_schema_agrees_with_the_protobuf_json_mapping() -> None:
    to_dict = importlib.import_module("google.protobuf.json_format").MessageToDict
    metadata = et_def_pb2.GlobalMetadata(version="1.0.0")
    storage = et_def_pb2.StorageInfo(
        level=et_def_pb2.STORAGE_LEVEL_FS,
        fs=et_def_pb2.FsOp(op=et_def_pb2.FsOp.FS_OP_READ, fd=-1, size_bytes=2**63),
    )
    node = et_def_pb2.Node(
        id=2**64 - 1, type=et_def_pb2.STORAGE_NODE, ctrl_deps=[0], data_deps=[1], storage=storage
    )
    for scalar in [kind.name.lower() for kind in Kind if not kind.name.endswith("_LIST")]:
        value: Any = {"string": "é", "bytes": b"\xff\xfe\xfd", "bool": True}.get(scalar, 3)
        node.attr.add(name=scalar, **{f"{scalar}_val": value})
        values = node.attr.add(name=f"{scalar}s")
        getattr(values, f"{scalar}_list").values.append(value)
    document = {"format": "chakra-et", "metadata": to_dict(metadata), "nodes": [to_dict(node)]}
    VALIDATORS["et"].validate(document)
