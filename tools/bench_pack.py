"""Pack the ETs of symmetric ranks, whose times differ from rank to rank, and read one of them.

    python tools/bench_pack.py --ranks 512 --operations 7000
    python tools/bench_pack.py --ranks 512 --docs             and put the figures into the docs

One pair of traces is converted. Each rank is that ET with durations that vary by 5 %, starts that
follow from them, times of threads within them, and a rank of its own. Prints sizes and times; the
exit status is 1 if a rank does not come back as it was.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from bench_convert import put_into
from pairs import make_pair

import chakra_et
from chakra_et.definitions import Kind
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.pack import pack, unpack

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "pack.md"
READS: Final = 5
"""So many ranks are read, one after the other, each from the file anew."""
HEAD: Final = (
    "| ranks | nodes of each | classes | ETs (MB) | packed (MB) | times smaller | packing (s) "
    "| reading one rank (s) | all ranks back |\n|---|---|---|---|---|---|---|---|---|"
)
_NUMBER: Final = re.compile(r"(?<=:)\d+")


def vary(trace: Trace, rank: int) -> None:
    """Give a trace the times of another rank."""
    random = np.random.default_rng(rank)
    nodes = trace.nodes
    factor = 1 + 0.05 * random.standard_normal(len(nodes))
    before = nodes.duration_ns.copy()
    nodes.duration_ns[:] = np.maximum(before * factor, 0).astype(np.int64)
    known = np.flatnonzero(nodes.start_ns != UNKNOWN_NS)
    order = known[np.argsort(nodes.start_ns[known], kind="stable")]
    late = np.cumsum((nodes.duration_ns - before)[order]) // 8 + int(random.integers(1 << 30))
    nodes.start_ns[order] += late
    for column in nodes.attributes.columns:
        if column.key.name == "time_parts":
            column.values = [
                _scaled(text, min(f, 1))
                for text, f in zip(column.values, factor[column.rows].tolist(), strict=True)
            ]
        elif column.key.name.endswith("_ns") and isinstance(column.values, np.ndarray):
            column.values = (column.values * factor[column.rows]).astype(column.values.dtype)
    trace.metadata.set("rank", Kind.INT32, rank)


def _scaled(parts: str, factor: float) -> str:
    """Parts of time, each so many times as long."""
    return _NUMBER.sub(lambda match: str(max(1, int(int(match[0]) * factor))), parts)


def make_ranks(folder: Path, ranks: int, operations: int) -> int:
    """The ETs of so many ranks; the nodes of each."""
    make_pair(operations, 0, folder, False)
    (folder / "ets").mkdir()
    chakra_et.convert(folder / "host.json", folder / "device.json", folder / "one.et")
    for rank in range(ranks):
        trace = chakra_et.read(folder / "one.et")
        vary(trace, rank)
        chakra_et.write(trace, folder / "ets" / f"trace.{rank}.et")
    return len(trace.nodes)


def processor_time(call: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds of a processor a call takes, and what it returns."""
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found


def measure(folder: Path, ranks: int, operations: int) -> tuple[str, bool]:
    """A table of sizes and times, and whether all ranks come back as they were."""
    nodes, target = make_ranks(folder, ranks, operations), folder / "run.pack"
    packing, packed = processor_time(lambda: pack(folder / "ets", target))
    reading = [
        processor_time(lambda: chakra_et.read(target / f"trace.{rank}.et"))[0]  # noqa: B023
        for rank in range(ranks - min(ranks, READS), ranks)
    ]
    files = unpack(target, folder / "back")
    same = all(f.read_bytes() == (folder / "ets" / f.name).read_bytes() for f in files)
    whole, small = packed.et_bytes / 1e6, packed.file_bytes / 1e6
    return (
        f"{HEAD}\n| {packed.ranks} | {nodes:,} | {packed.classes} | {whole:,.1f} | {small:,.1f} "
        f"| {whole / small:.1f} | {packing:.1f} | {statistics.median(reading):.3f} "
        f"| {'equal' if same else 'DIFFERENT'} |",
        same,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--operations", type=int, default=7000)
    parser.add_argument("--docs", action="store_true", help=f"put the figures into {PAGE.name}")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        table, same = measure(Path(name), asked.ranks, asked.operations)
    print(table)
    if asked.docs:
        put_into(PAGE, table)
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
