"""Write small traces as a first corpus for fuzzing: python tests/feeder/fuzz_seeds.py FOLDER."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from feeder_traces import N, attribute, bytes_field, number_field, random_nodes, trace  # noqa: E402


def every_kind() -> bytes:
    """One attribute of each kind."""
    scalars = [7, 9, 11, 13, 15, 17, 27]
    out = b"".join(attribute(f"k{kind}", kind, 3) for kind in scalars)
    out += attribute("text", 29, "abc") + attribute("edge_kinds", 29, "stream,data?")
    for kind in (8, 10, 28):
        content = bytes_field(kind, bytes_field(1, b"\x01\x02\x7f"))
        out += bytes_field(10, bytes_field(1, b"list") + content)
    out += bytes_field(10, bytes_field(1, b"d") + b"\x19" + b"\x00" * 8)
    out += bytes_field(10, bytes_field(1, b"f") + b"\x2d" + b"\x00" * 4)
    return out + bytes_field(8, bytes_field(1, b"[1]")) + number_field(12, 1)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random("seeds")
    seeds = [trace(random_nodes(rng, n, 2, cyclic=n % 2 == 0)) for n in range(1, 24)]
    seeds.append(trace([N(0), N(1, [0]), N(2, [0, 1], attrs=every_kind())]))
    seeds.append(trace([N(3, [3]), N(4, [77], type=1), N(5, [4], type=7)], metadata=None))
    seeds += [b'{"1": [0, 2], "\\u00e4": []}', b'[{"pg_name": "1", "ranks": [0, 2], "x": null}]']
    for number, seed in enumerate(seeds):
        choice = bytes([number * 37 % 256])
        (folder / f"seed-{number:02}").write_bytes(choice + seed)


if __name__ == "__main__":
    main()
