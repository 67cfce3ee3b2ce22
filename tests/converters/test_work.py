"""How much work readers and the writer do, counted: each byte, record and text once.

With the kernel and without it; time would tell the same, but only on a quiet machine.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pairs import make_pair

from chakra_et import convert
from chakra_et.converters.et import encode_et, encoder
from chakra_et.converters.kineto import read_device
from chakra_et.converters.pytorch import read_host
from chakra_et.converters.pytorch.distinct_io import DistinctIO
from chakra_et.io import json_array
from chakra_et.io.json_array import PIECE_BYTES, JsonArray
from chakra_et.io.text_buffer import TextBuffer
from chakra_et.kernel import FORCE_PYTHON, kernel
from chakra_et.model import Trace

FEW, MANY = 1000, 4000
READING = ("json_array", "records", "reader", "distinct_io", "compiled", "columns", "arrows")
"""The modules whose steps are counted of readers; others only look at nodes that communicate."""


@pytest.fixture(scope="module")
def pairs_by_size(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    made = {size: tmp_path_factory.mktemp(str(size)) for size in (FEW, MANY)}
    for size, directory in made.items():
        make_pair(size, 0, directory, False)
    return made


@pytest.fixture(params=["python", "kernel"])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which code runs."""
    chosen: str = request.param
    monkeypatch.setenv(FORCE_PYTHON, "1" if chosen == "python" else "0")
    if chosen == "kernel" and kernel() is None:
        pytest.skip("the kernel is not built")
    return chosen


@pytest.fixture(scope="module")
def traces(pairs_by_size: dict[int, Path]) -> dict[int, Trace]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(FORCE_PYTHON, "1")
        return {
            size: convert(pair / "host.json", pair / "device.json").trace
            for size, pair in pairs_by_size.items()
        }


def steps(action: Callable[[], Any]) -> Counter[str]:
    """How many functions are called of each module of this package, by the module's name."""
    called: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        package, _, module = frame.f_globals["__name__"].rpartition(".")
        if event == "call" and package.startswith("chakra_et"):
            called[module] += 1

    action()  # What is made once is made here.
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return called


class Counted:
    """What a reader does while this patches it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given = self.records = self.pieces = 0
        self.arrays: list[JsonArray[Any]] = []
        real_filled, real_iter = TextBuffer.filled, JsonArray.__iter__

        def filled(text: TextBuffer, count: int) -> None:
            self.given += count
            real_filled(text, count)

        def pieces(array: JsonArray[Any]) -> Iterator[Any]:
            self.arrays.append(array)
            for piece in real_iter(array):
                self.pieces += 1
                self.records += len(piece)
                yield piece

        monkeypatch.setattr(TextBuffer, "filled", filled)
        monkeypatch.setattr(JsonArray, "__iter__", pieces)


@pytest.mark.parametrize(
    ("name", "read", "array"),
    [("host", read_host, "nodes"), ("device", read_device, "traceEvents")],
)
@pytest.mark.usefixtures("code")
def test_each_byte_is_read_and_each_record_decoded_once(
    pairs_by_size: dict[int, Path],
    name: str,
    read: Callable[[Path], Any],
    array: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = pairs_by_size[MANY] / f"{name}.json"
    counted = Counted(monkeypatch)
    read(path)
    size = path.stat().st_size
    assert counted.given == size
    assert counted.records == len(json.loads(path.read_bytes())[array])
    (only,) = counted.arrays
    # Where the array ends is looked for in the last piece, which is walked once.
    assert only.looked_at <= size + 2 * PIECE_BYTES
    assert counted.pieces <= size / (PIECE_BYTES - json_array._NEAR_BYTES) + 2


def test_each_distinct_text_of_a_piece_is_decoded_once(pairs_by_size: dict[int, Path]) -> None:
    nodes = json.loads((pairs_by_size[FEW] / "host.json").read_bytes())["nodes"]
    texts = [json.dumps(node[side]) for node in nodes for side in ("inputs", "outputs")]
    decoder = DistinctIO()
    piece = decoder.decode(json.dumps(nodes).encode())
    assert piece is not None
    assert len(piece) == len(nodes)
    assert decoder.ios == len(piece.ios) == len(set(texts)) < len(texts) / 1.5
    places = [*piece.codes["inputs"].tolist(), *piece.codes["outputs"].tolist()]
    by_side = texts[::2] + texts[1::2]
    shown = [json.loads(text)["values"] for text in by_side]
    assert [json.loads(bytes(piece.ios[place].values)) for place in places] == shown


@pytest.mark.parametrize("node", ['{"id": -1, "name": "a"}', '{"id": 1, "name": "a", "inputs": 5}'])
def test_what_is_odd_is_left_to_the_decoder_of_whole_nodes(node: str) -> None:
    """It tells the place."""
    assert DistinctIO().decode(f"[{node}]".encode()) is None


@pytest.mark.parametrize(("name", "read"), [("host", read_host), ("device", read_device)])
@pytest.mark.usefixtures("code")
def test_readers_take_steps_for_pieces_and_not_for_records(
    pairs_by_size: dict[int, Path], name: str, read: Callable[[Path], Any]
) -> None:
    paths = [pair / f"{name}.json" for pair in pairs_by_size.values()]
    few, many = (steps(lambda path=path: read(path)) for path in paths)
    pieces = (paths[1].stat().st_size - paths[0].stat().st_size) / PIECE_BYTES
    assert (
        sum(many[module] - few[module] for module in READING) < 200 * pieces
    )  # of 400 records or more


def test_the_writer_takes_steps_for_parts_and_not_for_nodes(
    traces: dict[int, Trace], code: str
) -> None:
    most = {"python": 2500, "kernel": 50}[code]
    parts = [-(-len(trace.nodes) // encoder.ROWS_AT_ONCE) for trace in traces.values()]
    assert [sum(1 for _ in encode_et(trace)) for trace in traces.values()] == [n + 1 for n in parts]
    few, many = (
        steps(lambda trace=trace: b"".join(encode_et(trace))).total() for trace in traces.values()
    )
    assert parts[0] < parts[1]
    assert many - few < most * (parts[1] - parts[0])
