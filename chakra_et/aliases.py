"""The commands of mlc-chakra 1.0.0, by their names and options, run by the verbs of `chakra`.

    python -m chakra_et.aliases chakra_converter PyTorch --input linked.json --output trace.0.et

The package `chakra-et-aliases` (folder `aliases/`) installs them as console scripts. What the
commands and options are called is what mlc-chakra's own `--help` says.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from chakra_et.cli.app import main as chakra

_PICTURES: Final = (".dot", ".graphml", ".svg")


class _Parser(ArgumentParser):
    """Options of one command; what it does not know is an error that names the verb."""

    def __init__(self, name: str, verb: str) -> None:
        super().__init__(name, description=f"Runs `chakra {verb}`; see chakra {verb} -h.")
        self._verb = verb

    def error(self, message: str) -> NoReturn:
        remedy = (
            f"This is `chakra {self._verb}` by another name; its options: chakra {self._verb} -h."
        )
        print(f"error: {self.prog}: {message}. {remedy}", file=sys.stderr)
        raise SystemExit(2)

    def read(self, words: list[str], *without_effect: str) -> Namespace:
        """The options given; those without an effect here are named."""
        given = self.parse_args(words)
        for option in without_effect:
            if getattr(given, option.strip("-").replace("-", "_")) is not None:
                print(f"{self.prog}: {option} has no effect in chakra-et", file=sys.stderr)
        return given


def chakra_trace_link() -> None:
    """A host trace and a profile: the ET of both, which `chakra_converter` takes."""
    parser = _Parser("chakra_trace_link", "convert")
    parser.add_argument("--rank")
    parser.add_argument("--chakra-host-trace", "--pytorch-et-file", dest="host", required=True)
    parser.add_argument("--chakra-device-trace", "--kineto-file", dest="device", required=True)
    parser.add_argument("--output-file", required=True)
    parser.add_argument("--log-level")
    given = parser.read(sys.argv[1:], "--log-level")
    rank = [] if given.rank is None else ["--rank", given.rank]
    files = ["--host", given.host, "--device", given.device]
    _run("convert", *files, *rank, "-o", given.output_file)


def chakra_converter() -> None:
    """A linked trace, or a workload text, to ETs."""
    kind = next((word for word in sys.argv[1:] if word in _CONVERTERS), None)
    parser = _Parser("chakra_converter", "generate text" if kind == "Text" else "convert")
    parser.add_argument("kind", choices=_CONVERTERS)
    parser.add_argument("--log-filename")
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    if kind == "Text":
        parser.add_argument("--num-npus", required=True)
        parser.add_argument("--num-passes", required=True)
    else:
        parser.add_argument("--simulate", action="store_true")
    given = parser.read(sys.argv[1:], "--log-filename")
    _CONVERTERS[given.kind](given)


def _convert_linked(given: Namespace) -> None:
    with _one_file(Path(given.output)):
        _run("convert", given.input, "-o", given.output)
    if given.simulate:
        _run("replay", given.output)


def _convert_text(given: Namespace) -> None:
    counts = ["--ranks", given.num_npus, "--steps", given.num_passes]
    _run("generate", "text", given.input, *counts, "-o", given.output)


_CONVERTERS: Final[dict[str, Callable[[Namespace], None]]] = {
    "PyTorch": _convert_linked,
    "Text": _convert_text,
}


def chakra_visualizer() -> None:
    """An ET as a graph for other programs."""
    parser = _Parser("chakra_visualizer", "export")
    given = _files(parser)
    suffix = Path(given.output_filename).suffix
    if suffix not in _PICTURES:
        parser.error(f"no picture is called *{suffix}: there are {', '.join(_PICTURES)}")
    picture = ["--to", suffix[1:], "--limit", "0"]
    _run("export", given.input_filename, *picture, "-o", given.output_filename)


def chakra_jsonizer() -> None:
    """An ET as JSON."""
    parser = _Parser("chakra_jsonizer", "convert")
    given = _files(parser)
    if ".json" not in Path(given.output_filename).suffixes:
        parser.error(f"the name of JSON ends in .json, unlike {given.output_filename}")
    _run("convert", given.input_filename, "-o", given.output_filename)


def chakra_timeline_visualizer() -> None:
    """There is no such command: says what there is."""
    parser = _Parser("chakra_timeline_visualizer", "compare-sim")
    parser.add_argument("--num_npus")
    parser.add_argument("--npu_frequency")
    parser.add_argument("--log_filename")
    given = _files(parser)
    parser.error(
        "a log is drawn beside the traces that were simulated: "
        f"chakra compare-sim TRACES {given.input_filename} -o page.html"
    )


def chakra_generator() -> None:
    """Small traces for tests, in the current directory: a directory for each case."""
    parser = _Parser("chakra_generator", "generate micro")
    parser.add_argument("--num_npus")
    parser.add_argument("--default_runtime", type=int, help="in us")
    parser.add_argument("--default_tensor_size")
    parser.add_argument("--default_comm_size")
    given = parser.read(sys.argv[1:], "--default_tensor_size")
    runtime = None if given.default_runtime is None else str(given.default_runtime * 1000)
    options = {
        "--ranks": given.num_npus, "--duration-ns": runtime, "--size": given.default_comm_size,
    }  # fmt: skip
    words = [word for pair in options.items() if pair[1] is not None for word in pair]
    _run("generate", "micro", "all", *words, "-o", ".")


def _files(parser: _Parser) -> Namespace:
    parser.add_argument("--input_filename", required=True)
    parser.add_argument("--output_filename", required=True)
    return parser.read(sys.argv[1:])


def _run(*words: str) -> None:
    """Run a verb. Ends the program where it ends with an error."""
    sys.argv = ["chakra", *words]
    try:
        chakra()
    except SystemExit as end:
        if end.code:
            raise


@contextmanager
def _one_file(output: Path) -> Iterator[None]:
    """Make an output one file whatever its name: `chakra convert` writes a file where one is."""
    made = output.parent.is_dir() and not output.exists()
    if made:
        output.touch()
    try:
        yield
    finally:
        if made and output.exists() and output.stat().st_size == 0:
            output.unlink()


ALIASES: Final = {
    alias.__name__: alias
    for alias in (
        chakra_converter,
        chakra_generator,
        chakra_jsonizer,
        chakra_timeline_visualizer,
        chakra_trace_link,
        chakra_visualizer,
    )
}


def main() -> None:
    """Run the command that the first word names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in ALIASES:
        print(f"error: no command {name!r}; there are {', '.join(ALIASES)}.", file=sys.stderr)
        raise SystemExit(2)
    del sys.argv[1]
    ALIASES[name]()


if __name__ == "__main__":
    main()
