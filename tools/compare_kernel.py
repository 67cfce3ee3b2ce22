"""Read, write, feed and replay everything with the compiled kernel and without it: is it the same?

    python tools/compare_kernel.py DIRECTORY              every trace below a directory
    python tools/compare_kernel.py DIRECTORY --damaged N  N damaged copies of pieces of them

What readers give is compared down to the order in pools; what is written, byte by byte; what the
feeder loads and when nodes start in a replay, number by number. Prints each difference; the exit
status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alike import difference
from fuzz_bytes import BYTES
from fuzz_json import mutate_json
from fuzz_seeds import Seeds, seeds
from fuzz_wire import mutate_wire

from chakra_et import ChakraError
from chakra_et.converters.et import encode_et
from chakra_et.converters.format import View
from chakra_et.feeder.scan import scan
from chakra_et.inputs import open_input
from chakra_et.io.json_array import JsonArray
from chakra_et.io.memory import collection_paused
from chakra_et.kernel import FORCE_PYTHON, kernel, state
from chakra_et.linker import link
from chakra_et.model import Trace
from chakra_et.recording import Recording
from chakra_et.replay import replay

READ = {View.HOST, View.DEVICE, View.TRACE}


@contextmanager
def pure_python() -> Iterator[None]:
    """Without the kernel."""
    os.environ[FORCE_PYTHON] = "1"
    try:
        yield
    finally:
        del os.environ[FORCE_PYTHON]


def read(path: Path) -> Any:
    """What a reader gives, or the error that it raises; None for what is not read here."""
    try:
        given = open_input(path)
        return given.read() if given.view in READ else None
    except ChakraError as error:
        return str(error)


def linked(content: Any) -> Trace | str:
    """A trace, or that of one view of a run; the error where there is none."""
    if isinstance(content, (str, Trace)):
        return content
    host = content if hasattr(content, "parent") else None
    recording = Recording(host, None if host is not None else content)
    try:
        return link(recording).trace
    except ChakraError as error:
        return str(error)


def written(trace: Trace | str) -> bytes | str:
    """The ET of a trace."""
    try:
        return trace if isinstance(trace, str) else b"".join(encode_et(trace))
    except ValueError as error:
        return str(error)


def replayed(trace: Trace | str) -> Any:
    """When each node of a trace starts, and for how long, when it is run by its edges."""
    if isinstance(trace, str):
        return trace
    try:
        nodes = replay(trace).trace.nodes
    except ChakraError as error:
        return str(error)
    return nodes.start_ns.tobytes(), nodes.duration_ns.tobytes()


def fed(path: Path) -> Any:
    """What the feeder makes of the bytes of a file, whatever they are."""
    try:
        columns = vars(scan(path.read_bytes(), 1 << 28))
    except ChakraError as error:
        return str(error)
    return {name: getattr(value, "tobytes", lambda v=value: v)() for name, value in columns.items()}


@collection_paused()
def compare(path: Path) -> str:
    """What of a file comes out differently, "" where nothing does."""
    mine, my_columns = read(path), fed(path)
    with pure_python():
        theirs, their_columns = read(path), fed(path)
    if my_columns != their_columns:
        return "fed differently"
    if mine is None:
        return ""
    # A trace is what its bytes say.
    found = "" if isinstance(mine, Trace) else difference(mine, theirs)
    if found:
        return f"read differently: {found}"
    my_trace = linked(mine)
    fast, my_times = written(my_trace), replayed(my_trace)
    with pure_python():
        their_trace = linked(theirs)
        slow, their_times = written(their_trace), replayed(their_trace)
    if fast != slow:
        return "written differently"
    return "" if my_times == their_times else "replayed differently"


def small_pieces() -> None:
    """Let arrays be read in pieces of a few records: files are too small for others."""
    defaults: Any = JsonArray.__init__.__kwdefaults__
    defaults["piece_bytes"] = 1 << 11


def damaged(corpus: Seeds, count: int, folder: Path, seed: int) -> Iterator[Path]:
    """Damaged copies of what a fuzzer starts from, one after the other in one file."""
    rng = random.Random(seed)
    path, texts = folder / "input.json", corpus.texts
    for _ in range(count):
        way = rng.random()
        if way < 0.4:
            text = mutate_json(rng, rng.choice(corpus.documents))
        elif way < 0.6:
            text = mutate_wire(rng, rng.choice(corpus.ets))
        else:
            text = rng.choice(texts)
            for _ in range(rng.choice((1, 1, 2, 4))):
                text = rng.choice(BYTES)(rng, text, texts)[: 1 << 19]
        path.write_bytes(text)
        yield path


def run(paths: Iterable[Path], keep: Path | None) -> int:
    """Compare files; how many differ."""
    outcomes: Counter[str] = Counter()
    for number, path in enumerate(paths):
        found = compare(path)
        outcomes["different" if found else "the same"] += 1
        if found:
            print(f"{path}: {found}", flush=True)
            if keep is not None:
                keep.mkdir(exist_ok=True)
                (keep / f"{number}{path.suffix}").write_bytes(path.read_bytes())
    print(", ".join(f"{count} {what}" for what, count in outcomes.items()))
    return outcomes["different"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--damaged", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep files that differ")
    options = parser.parse_args()
    print(state())
    if kernel() is None:
        return 2
    if not options.damaged:
        files = sorted(path for path in options.directory.rglob("*") if path.is_file())
        return int(run(files, options.keep) > 0)
    small_pieces()
    with tempfile.TemporaryDirectory() as folder:
        corpus = seeds([options.directory])
        paths = damaged(corpus, options.damaged, Path(folder), options.seed)
        return int(run(paths, options.keep) > 0)


if __name__ == "__main__":
    sys.exit(main())
