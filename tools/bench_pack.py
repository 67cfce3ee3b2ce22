"""Pack the ETs of symmetric ranks, whose times differ from rank to rank, and read one of them.

    python tools/bench_pack.py --ranks 512 --operations 7000

One pair of traces is converted. Each rank is that ET with durations that vary by 5 %, starts that
follow from them, times of threads within them, and a rank of its own. Prints sizes and times.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import numpy as np
from pairs import make_pair

import chakra_et
from chakra_et.definitions import Kind
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.pack import pack, unpack

_NUMBER = re.compile(r"(?<=:)\d+")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--operations", type=int, default=7000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pair(asked.operations, 0, folder, False)
        (folder / "ets").mkdir()
        chakra_et.convert(folder / "host.json", folder / "device.json", folder / "one.et")
        for rank in range(asked.ranks):
            trace = chakra_et.read(folder / "one.et")
            vary(trace, rank)
            chakra_et.write(trace, folder / "ets" / f"trace.{rank}.et")
        begin = time.process_time()
        packed = pack(folder / "ets", folder / "run.pack")
        print(
            f"{packed.ranks} ranks of {len(trace.nodes)} nodes in {packed.classes} classes: "
            f"{packed.et_bytes} bytes in {packed.file_bytes}, "
            f"{packed.et_bytes / packed.file_bytes:.1f} times smaller, "
            f"{time.process_time() - begin:.1f} s of a processor"
        )
        begin = time.process_time()
        chakra_et.read(folder / "run.pack" / f"trace.{asked.ranks - 1}.et")
        print(f"one rank: {time.process_time() - begin:.3f} s of a processor")
        files = unpack(folder / "run.pack", folder / "back")
        same = all(f.read_bytes() == (folder / "ets" / f.name).read_bytes() for f in files)
        print(f"{len(files)} ranks back: {'equal' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
