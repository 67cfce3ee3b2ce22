"""Hand damaged traces to the readers: no traceback, no hang, bounded memory, no half file.

    python tools/fuzz_inputs.py --seconds 600 --data DIRECTORY --keep failures

Inputs are made of real traces (and of the examples of this repository): short pieces of them are
cut, flipped, swapped, packed, nested, blown up. Each must either convert, with a report that adds
up and an output that can be read back, or end in a ChakraError without an output. Whatever else
happens is kept, with the seed that made it. The exit status is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import zstandard

from chakra_et import ChakraError, convert, read
from chakra_et.converters.format import View
from chakra_et.inputs import open_input
from chakra_et.io.source import read_all
from chakra_et.linker.report import Report

ROOT = Path(__file__).resolve().parents[1]
OWN = (ROOT / "examples", ROOT / "tests" / "linked")
PIECE = 40
"""Records in a piece of a trace."""
ET_BYTES = 1 << 14
SECONDS = 20
"""One input that takes more processor time hangs."""
MEMORY = 3 << 30
JUNK = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\x01", b"\xff", b"\n", b"NaN",
        b"null", b'{"id": ', b'"nodes": [', b'{"ph": ', b"]}", b'"traceEvents": [', b"1e999",
        b"-", b"\\u", b"\\ud800", b'{"schema": "1.1.1", "nodes": [']  # fmt: skip
HUGE = [b"9" * 19, b"9" * 20, b"9" * 400, b"-" + b"9" * 19, b"1e308", b"0.1e-300", b"-0", b'"7"',
        b"18446744073709551615", b"NaN", b"-Infinity", b"true", b"null", b"[]", b"{}"]  # fmt: skip

Mutation = Callable[[random.Random, bytes, list[bytes]], bytes]


class HangError(BaseException):
    """An input took too long."""


def some_place(rng: random.Random, text: bytes) -> int:
    return rng.randrange(len(text) + 1)


def cut(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    return text[: some_place(rng, text)]


def cut_out(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = some_place(rng, text)
    return text[:at] + text[at + rng.choice((1, 2, 20, 300)) :]


def flip(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(text)
    for _i in range(rng.choice((1, 1, 3, 30))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = some_place(rng, text)
    return text[:at] + rng.choice(JUNK) * rng.choice((1, 1, 1, 50)) + text[at:]


def insert_in_name(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    places = [i + 9 for i in range(len(text)) if text.startswith(b'"name": "', i)]
    at = rng.choice(places) if places else 0
    return text[:at] + rng.choice(JUNK) + text[at:]


def repeat(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at, length = some_place(rng, text), rng.choice((1, 50, 2000))
    return text[:at] + text[at : at + length] * rng.choice((2, 5)) + text[at + length :]


def swap(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    a, b = sorted((some_place(rng, text), some_place(rng, text)))
    return text[b:] + text[a:b] + text[:a]


def splice(rng: random.Random, text: bytes, corpus: list[bytes]) -> bytes:
    other = rng.choice(corpus)
    return text[: some_place(rng, text)] + other[some_place(rng, other) :]


def join(rng: random.Random, text: bytes, corpus: list[bytes]) -> bytes:
    return text + rng.choice((b"", b"\n", b",")) + rng.choice((text, rng.choice(corpus)))


def number(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    places = [i for i in range(len(text)) if text[i : i + 1].isdigit()]
    if not places:
        return text
    at = end = rng.choice(places)
    while text[end : end + 1].isdigit():
        end += 1
    return text[:at] + rng.choice(HUGE) + text[end:]


def nest(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    depth = rng.choice((10, 150, 300, 1000, 5000, 200_000))
    opening, closing = rng.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"[{", b"}]"), (b'[{"id":', b"}]"))
    )
    bomb = opening * depth + rng.choice((b"1", b"")) + closing * rng.choice((depth, 0))
    places = [i + 1 for i in range(len(text)) if text[i : i + 1] == b":"]
    at = rng.choice(places) if places else 0
    return text[:at] + bomb + rng.choice((b"", b",")) + text[at:]


def pack(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    packed = rng.choice((gzip.compress, zstandard.compress, zipped))(text)
    return rng.choice((cut, flip, lambda _r, t, _c: t, lambda _r, t, _c: t * 2))(rng, packed, [])


def zipped(text: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", text)
    return target.getvalue()


def bomb(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Some hundred megabytes that pack well."""
    filler = rng.choice((b" ", b"\x00", b'{"ph":"X"},', b'"', b"[", b'{"id":', b'{"name":"', text))
    at = some_place(rng, text)
    compress = zstandard.ZstdCompressor().compressobj() if rng.random() < 0.5 else None
    if compress is None:
        target = io.BytesIO()
        with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1) as stream:
            stream.write(text[:at])
            block = filler * max(1, (1 << 20) // max(len(filler), 1))
            for _i in range(rng.choice((8, 64, 400))):
                stream.write(block)
            stream.write(text[at:])
        return target.getvalue()
    block = filler * max(1, (1 << 20) // max(len(filler), 1))
    parts = [compress.compress(text[:at])]
    parts += [compress.compress(block) for _i in range(rng.choice((8, 64, 400)))]
    return b"".join([*parts, compress.compress(text[at:]), compress.flush()])


SMALL: list[Mutation] = [
    cut, cut_out, flip, insert, insert_in_name, repeat, swap, splice, join, number, nest, pack,
]  # fmt: skip


def pieces(data: Path | None) -> list[bytes]:
    """Short pieces of real traces, and whole ETs that are short."""
    corpus = []
    for folder in OWN if data is None else (*OWN, data):
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.suffix == ".md" or path.name == "LICENSE":
                continue
            content = read_all(path)
            try:
                document = json.loads(content)
            except ValueError:
                corpus.append(content[:ET_BYTES])
                continue
            for key in ("nodes", "traceEvents", "workload_graph"):
                if isinstance(document, dict) and key in document:
                    records = document[key]
                    middle = max(0, len(records) // 2 - PIECE // 2)
                    short = {**document, key: [*records[middle : middle + PIECE], *records[-3:]]}
                    corpus.append(json.dumps(short).encode())
                    corpus.append(json.dumps(short, indent=2).encode())
    return corpus


def mutated(rng: random.Random, corpus: list[bytes], bombs: float) -> bytes:
    text = rng.choice(corpus)
    if rng.random() < bombs:
        return bomb(rng, text, corpus)
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = rng.choice(SMALL)(rng, text, corpus)
        if len(text) > 1 << 22:
            break
    return text


def adds_up(report: Report) -> bool:
    tallies = [report.host_nodes, *report.records.values()]
    made = sum(tally.kept for tally in tallies) + sum(report.added.values())
    whole = all(t.total == t.kept + t.merged + t.left_out.total() for t in tallies)
    return whole and made == sum(report.nodes.values())


def attempt(path: Path, output: Path) -> str:
    """How one input ended. Raises AssertionError for an account or an output that is wrong."""
    output.unlink(missing_ok=True)
    try:
        view = open_input(path).view
        if view is View.TRACE:
            read(path)
            return "read"
        is_host = view is not View.DEVICE
        result = convert(path if is_host else None, None if is_host else path, output)
    except ChakraError:
        assert not output.exists(), "an error, but an output"
        return "refused"
    assert adds_up(result.report), "the report does not add up"
    assert len(read(output).nodes) == len(result.trace.nodes), "the output is not whole"
    return "mended" if result.report.repairs else "converted"


@dataclass
class Fuzzer:
    """A run: what was tried, and how it ended."""

    corpus: list[bytes]
    keep: Path
    bombs: float

    def run(self, seed: int, seconds: float, most: int) -> tuple[Counter[str], float]:
        """Try inputs until the time is over; counts by ending, most seconds that one took."""
        ended: Counter[str] = Counter()
        longest = 0.0
        until = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as folder:
            path, output = Path(folder, "input"), Path(folder, "output.et")
            while time.monotonic() < until and ended.total() < most:
                content = mutated(random.Random(seed), self.corpus, self.bombs)
                path.write_bytes(content)
                begun = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                try:
                    ended[attempt(path, output)] += 1
                except (Exception, HangError):
                    ended["FAILED"] += 1
                    self._keep(seed, content)
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                longest = max(longest, time.process_time() - begun)
                seed += 1
        return ended, longest

    def _keep(self, seed: int, content: bytes) -> None:
        self.keep.mkdir(parents=True, exist_ok=True)
        (self.keep / f"{seed}.input").write_bytes(content)
        (self.keep / f"{seed}.txt").write_text(traceback.format_exc())
        print(f"seed {seed}: {traceback.format_exc().strip().splitlines()[-1]}", file=sys.stderr)


def hang(_signal: int, _frame: FrameType | None) -> None:
    raise HangError(f"more than {SECONDS} s")


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
    """Run for a time and say what was tried."""
    parser = argparse.ArgumentParser(description="Hand damaged traces to the readers.")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--inputs", type=int, default=1 << 62, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="a directory of real traces")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument(
        "--bombs", type=float, default=0.002, help="share of inputs that unpack big"
    )
    options = parser.parse_args()
    limit_memory()
    signal.signal(signal.SIGPROF, hang)
    fuzzer = Fuzzer(pieces(options.data), options.keep, options.bombs)
    ended, longest = fuzzer.run(options.seed, options.seconds, options.inputs)
    counts = ", ".join(f"{count} {how}" for how, count in sorted(ended.items()))
    print(f"{ended.total()} inputs tried from seed {options.seed}: {counts}")
    print(f"longest {longest:.1f} s of processor time, most memory {peak_mebibytes()} MiB")
    return 1 if ended["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
