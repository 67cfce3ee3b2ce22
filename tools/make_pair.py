"""Make a host trace and a device trace of one run, of any size.

    python tools/make_pair.py --host-ops 100000 --seed 0 -o DIR

The run is data-parallel training of a transformer on one GPU of eight: what rank 0 of PyTorch 2.x
would record with an execution-trace observer (`host.json`) and with Kineto (`device.json`). The
two files join as real ones do (record-function ids, External ids, correlations, flows), and what
they say is consistent: an op lies within its parent, device work starts after the call that
launched it, and a stream runs one thing at a time. Equal arguments give equal bytes.

`pairs.make_pair` is the same for tests; it returns what the pair contains.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from pairs import make_pair


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a host and a device trace of one run.")
    parser.add_argument(
        "--host-ops",
        type=int,
        required=True,
        metavar="N",
        help="1 000 or more; 1 000 000 are 1.9 GB",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--by-steps",
        action="store_true",
        help="the profile step by step, not thread by thread: without room for parts",
    )
    parser.add_argument("--gzip", action="store_true", help="compress both files")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    facts = make_pair(
        options.host_ops,
        options.seed,
        options.output,
        options.gzip,
        by_steps=options.by_steps,
    )
    for name, value in asdict(facts).items():
        print(f"{name:>13}  {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
