"""Hand damaged files to every reader: no traceback, no hang, bounded memory, no half file.

    python tools/fuzz_inputs.py --inputs 100000 --data DIRECTORY --keep failures

Inputs are made of short pieces of real traces, of the examples of this repository, and of what is
made of these: JSON whose values, keys and records are changed (`fuzz_json.py`), ETs in protobuf
whose fields and records are (`fuzz_wire.py`), damaged bytes, and damaged or nested containers
(`fuzz_bytes.py`), under plain and odd names. Each goes to what reads such a file: the converters
and the linker, the reader of ETs, the feeder whole and in a window, the validators. It must end
with an account that adds up and an output that can be read back, or in a ChakraError without one.
Whatever else happens is kept, with the seed that made it. The exit status is 1 if there was any.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from fuzz_bytes import BYTES, bomb, contained
from fuzz_json import mutate_json
from fuzz_seeds import Seeds, seeds
from fuzz_wire import mutate_wire

from chakra_et import ChakraError, Feeder, convert_directory, read, validate
from chakra_et.converters.format import View
from chakra_et.inputs import open_input
from chakra_et.linker.output.report import Report
from chakra_et.shown import shown

SECONDS: Final = 20
BYTES_A_SECOND: Final = 300_000
"""An input hangs that takes more processor time than this, and than its bytes give it. The slowest
reader, that of damaged ETs, takes half as long; a loaded machine, whose caches are shared, more."""
MEMORY: Final = 3 << 30
EACH: Final = 1000
"""After so many inputs it is told how they ended."""
NAMES: Final = (
    "input", "input.json", "trace.0.et", "rank3_trace.json.gz", "t.nsys-rep", "comm_groups.json",
    "\x1b[31m.et", os.fsdecode(b"\xff\xfe.json"), "a b\n.json", "n" * 240 + ".json",
)  # fmt: skip
SHARES: Final = {"json": 45, "wire": 30, "bytes": 20, "containers": 5}
"""How many of a hundred inputs are made in which way."""


class HangError(BaseException):
    """An input took too long."""


def made(rng: random.Random, corpus: Seeds, bombs: float) -> tuple[str, bytes, int]:
    """How an input was made, the input, and how many bytes it unpacks to."""
    if rng.random() < bombs:
        return "bombs", *bomb(rng, rng.choice(corpus.texts))
    way = rng.choices(list(SHARES), list(SHARES.values()))[0]
    if way == "json":
        text = mutate_json(rng, rng.choice(corpus.documents))
    elif way == "wire":
        text = mutate_wire(rng, rng.choice(corpus.ets))
    else:
        text = rng.choice(corpus.texts)
    if way == "bytes" or rng.random() < 0.05:
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(BYTES)(rng, text, corpus.texts)[: 1 << 19]
    if way == "containers":
        text = contained(rng, text)
    return way, text, len(text)


def adds_up(report: Report) -> bool:
    tallies = [report.host_nodes, *report.records.values()]
    kept = sum(tally.kept for tally in tallies) + sum(report.added.values())
    whole = all(t.total == t.kept + t.merged + t.left_out.total() for t in tallies)
    return whole and kept == sum(report.nodes.values())


def attempt(rng: random.Random, path: Path, output: Path) -> str:
    """How one input ended. Raises AssertionError for an account or an output that is wrong."""
    if rng.random() < 0.1:
        for error in validate([path], rng.choice(("core", "astra-sim", "mlc-chakra"))).unreadable:
            assert "\n" not in shown(str(error))
    try:
        view = open_input(path).view
        if view is View.TRACE:
            return _read(rng, path)
        converted = convert_directory(path, None)
        for conversion in converted:
            conversion.write(output)
            assert len(read(output).nodes) == len(conversion.trace.nodes), "the output is not whole"
            assert adds_up(conversion.report), "the report does not add up"
            output.unlink()
    except ChakraError as error:
        str(error).encode()
        assert not output.exists(), "an error, but an output"
        return "refused"
    mended = any(conversion.report.repairs for conversion in converted)
    return "mended" if mended else "converted"


def _read(rng: random.Random, path: Path) -> str:
    """Read an ET, and feed it."""
    try:
        trace = read(path)
    except ChakraError:
        trace = None
    try:
        fed = sum(1 for _ in Feeder(path, window=rng.choice((0, 0, 4))))
        assert trace is None or fed == len(trace.nodes), "reader and feeder differ about the nodes"
    except ChakraError:
        return "refused" if trace is None else "read"
    return "fed"


@dataclass
class Fuzzer:
    """A run: what was tried, and how it ended."""

    corpus: Seeds
    keep: Path
    bombs: float
    ended: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0

    def run(self, seed: int, seconds: float, most: int) -> None:
        """Try inputs until the time is over, or there were so many."""
        until = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as folder:
            while time.monotonic() < until and self.ended.total() < most:
                self._try(seed, Path(folder))
                seed += 1
                if self.ended.total() % EACH == 0:
                    self.tell()

    def tell(self) -> None:
        """Say what was tried so far, and how it ended."""
        for counts in (self.ways, self.ended):
            print(", ".join(f"{count} {how}" for how, count in sorted(counts.items())))
        print(f"longest {self.longest:.1f} s of processor time, {peak_mebibytes()} MiB of memory")
        sys.stdout.flush()

    def _try(self, seed: int, folder: Path) -> None:
        rng = random.Random(seed)
        way, content, size = made(rng, self.corpus, self.bombs)
        self.ways[way] += 1
        path, output = folder / rng.choice(NAMES), folder / "out.et"
        path.write_bytes(content)
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS + size / BYTES_A_SECOND)
        try:
            self.ended[attempt(rng, path, output)] += 1
        except (Exception, HangError):
            self.ended["FAILED"] += 1
            self._keep(seed, content)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.longest = max(self.longest, time.process_time() - begun)
        path.unlink()
        output.unlink(missing_ok=True)

    def _keep(self, seed: int, content: bytes) -> None:
        self.keep.mkdir(parents=True, exist_ok=True)
        (self.keep / f"{seed}.input").write_bytes(content)
        (self.keep / f"{seed}.txt").write_text(traceback.format_exc(), errors="backslashreplace")
        last = traceback.format_exc().strip().splitlines()[-1]
        print(f"seed {seed}: {shown(last)[:200]}", file=sys.stderr, flush=True)


def hang(_signal: int, _frame: FrameType | None) -> None:
    raise HangError("it takes too long")


def limit_memory() -> None:
    """Make too much memory an error of this process."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def peak_mebibytes() -> int:
    """The most memory that this process has had."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> int:
    """Run for a time, or a number of inputs, and say what was tried."""
    parser = argparse.ArgumentParser(description="Hand damaged files to every reader.")
    parser.add_argument("--inputs", type=int, default=100_000, help="stop after so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="of the first input; others count on")
    parser.add_argument("--data", type=Path, action="append", default=[], help="more real traces")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument(
        "--bombs", type=float, default=0.0005, help="share of inputs that unpack big"
    )
    options = parser.parse_args()
    limit_memory()
    signal.signal(signal.SIGPROF, hang)
    fuzzer = Fuzzer(seeds(options.data), options.keep, options.bombs)
    with suppress(KeyboardInterrupt):
        fuzzer.run(options.seed, options.seconds, options.inputs)
    fuzzer.tell()
    print(f"{fuzzer.ended.total()} inputs tried from seed {options.seed}")
    return 1 if fuzzer.ended["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
