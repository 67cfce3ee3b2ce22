"""A trace as JSON: the records of the protobuf form, each in protobuf's JSON mapping."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from chakra_et.converters.et.decoder import decode_records
from chakra_et.converters.et.encoder import encode_metadata, formed_nodes
from chakra_et.converters.et.json_feeder import GRAPH, feeder_metadata, feeder_node
from chakra_et.converters.et.json_mapping import JsonError, from_json, to_json
from chakra_et.converters.et.json_messages import METADATA, NODE
from chakra_et.converters.et.json_records import NodeRecords, items
from chakra_et.converters.et.json_texts import NODES_AT_ONCE, NodeTexts, encode
from chakra_et.converters.et.wire import WireError, varint
from chakra_et.io.memory import collection_paused
from chakra_et.model import Trace

FORMAT: Final = "chakra-et"
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BOM: Final = b"\xef\xbb\xbf"


def encode_json(trace: Trace) -> Iterator[bytes]:
    """The document, in blocks, with one node in each line.

    Raises ValueError for a time that the format cannot tell.
    """
    metadata = encode(to_json(METADATA, encode_metadata(trace.metadata)))
    yield b'{"format": "%s", "metadata": %s,\n"nodes": [' % (FORMAT.encode(), metadata)
    comma = b"\n"
    for lines in formed_nodes(trace, partial(_lines, NodeTexts())):
        yield comma
        yield lines
        comma = b",\n"
    yield b"\n]}\n"


def _lines(texts: NodeTexts, bodies: list[bytes]) -> bytes:
    parts = (bodies[at : at + NODES_AT_ONCE] for at in range(0, len(bodies), NODES_AT_ONCE))
    return b",\n".join(line for part in parts for line in texts.of(part))


def decode_json(data: bytes) -> Trace:
    """The trace of a document in this form, or in the older one with `workload_graph`.

    Raises JsonError, with the place, when it is neither.
    """
    text = data.removeprefix(_BOM)
    with collection_paused():
        try:
            document = _TOP.decode(text)
            if GRAPH in document:
                records = _feeder_records(document)
                graph = GRAPH
            else:
                records = _records(document)
                graph = "nodes"
            frames = [varint(len(record)) + record for record in records]
        except msgspec.DecodeError as error:
            raise _malformed(error) from None
        except RecursionError:
            raise JsonError("nested too deep", "") from None
        wire = b"".join(frames)
        try:
            return decode_records(wire)
        except WireError as error:
            raise JsonError(str(error), _place(frames, error.at, graph)) from None


def _malformed(error: msgspec.DecodeError) -> JsonError:
    where = re.search(r" \((byte \d+)\)$", str(error))
    reason = str(error)[: where.start()] if where else str(error)
    if isinstance(error, msgspec.ValidationError):
        return JsonError(reason.split(" - at ")[0], "")
    reason = reason.removeprefix("JSON is malformed: ")
    return JsonError(f"not valid JSON: {reason}", where[1] if where else "")


def _place(frames: list[bytes], at: int, graph: str) -> str:
    starts = [0]
    for frame in frames:
        starts.append(starts[-1] + len(frame))
    record = bisect_right(starts, at) - 1
    return "metadata" if record == 0 else f"{graph}[{record - 1}]"


def _records(document: dict[str, msgspec.Raw]) -> Iterator[bytes]:
    for name in document:
        if name not in ("format", "metadata", "nodes"):
            raise JsonError("no such key in an execution trace", name)
    found = msgspec.json.decode(document["format"]) if "format" in document else None
    if found != FORMAT:
        raise JsonError(f'expected "{FORMAT}"', "format")
    for name in ("metadata", "nodes"):
        if name not in document:
            raise JsonError("this is missing", name)
    yield from_json(METADATA, msgspec.json.decode(document["metadata"]), "metadata")
    records = NodeRecords()
    for number, node in enumerate(items(document["nodes"], "nodes")):
        yield records.of(node, f"nodes[{number}]")


def _feeder_records(document: dict[str, msgspec.Raw]) -> Iterator[bytes]:
    beside = {name: msgspec.json.decode(raw) for name, raw in document.items() if name != GRAPH}
    yield from_json(METADATA, feeder_metadata(beside), "")
    for number, raw in enumerate(items(document[GRAPH], GRAPH)):
        place = f"{GRAPH}[{number}]"
        yield from_json(NODE, feeder_node(msgspec.json.decode(raw), place), place)
