"""The command `chakra` and its verbs."""

from __future__ import annotations

import inspect
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any, Final, TypeAlias

import typer

from chakra_et.cli.docstrings import docstring_of
from chakra_et.cli.ending import all_printed, streams_opened, to_nowhere
from chakra_et.errors import ChakraError
from chakra_et.io.cores import load_numpy
from chakra_et.io.fork import forks_allowed
from chakra_et.io.memory import limit_memory, memory_limited, more_memory, size_in_bytes
from chakra_et.io.protected import inputs_protected
from chakra_et.version import __version__

Example: TypeAlias = tuple[str, str]
"""Words, and what they do."""
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit, such as 8G or 500M; by default the free memory.",
        show_default=False,
    ),
]
GROUPS: Final[dict[str, dict[str, tuple[str, dict[str, Any]]]]] = {
    "Record": {
        "collect": ("collect", {"context_settings": "CONTEXT"}),
        "doctor": ("doctor", {}),
    },
    "Convert and check": {
        "convert": ("convert", {}),
        "merge": ("merge", {}),
        "pack": ("pack", {}),
        "unpack": ("pack", {}),
        "info": ("info", {}),
        "validate": ("validate", {}),
        "explain": ("validate", {}),
        "fix": ("fix", {}),
        "formats": ("formats", {}),
    },
    "See": {
        "report": ("report", {}),
        "show": ("timeline", {}),
        "stats": ("stats", {}),
        "analyze": ("analyze", {}),
        "diff": ("diff", {}),
        "query": ("query", {}),
        "export": ("export", {}),
    },
    "What if": {
        "whatif": ("whatif", {}),
        "replay": ("replay", {"cls": "ReplayCommand"}),
        "estimate": ("estimate", {}),
        "fit": ("fit", {}),
    },
    "Run again": {
        "run": ("run", {}),
    },
    "Workloads": {
        "generate": ("generate", {}),
        "scale": ("scale", {}),
        "synth": ("synth", {}),
    },
    "Simulators": {
        "feed": ("feed", {}),
        "feeder": ("feeder", {}),
        "compare-sim": ("compare_sim", {}),
    },
    "Share": {
        "anonymise": ("anonymise", {}),
        "audit": ("audit", {}),
    },
}
"""The verbs as help groups them: the module of this package that holds `VERB_command`, and options
by name.

The module's `EXAMPLES` has examples of the verb for its help: words and what they do.
"""
VERBS: Final = {verb: entry for verbs in GROUPS.values() for verb, entry in verbs.items()}
"""The same without groups."""
FIRST_STEPS: Final[tuple[Example, ...]] = (
    ("chakra collect -o run -- python train.py", "record a training script"),
    ("chakra convert run -o traces", "make execution traces of it"),
    ("chakra validate traces", "check them"),
    ("chakra report traces -o report.html", "see what limits the run"),
    ("chakra whatif traces --set time:name~gemm=0.5", "ask what a change would bring"),
    ("chakra VERB -h", "options and examples of a verb"),
)


def command_name(verb: str) -> str:
    """What the command of a verb is called in its module."""
    return f"{verb.replace('-', '_')}_command"


def group_of(verb: str) -> str:
    """The head under which help lists a verb."""
    return next(group for group, verbs in GROUPS.items() if verb in verbs)


def _version(wanted: bool) -> None:
    if wanted:
        from chakra_et.kernel import state

        typer.echo(f"chakra-et {__version__} ({state()})")
        raise typer.Exit


def _chakra(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version, and which code runs.",
        ),
    ] = False,
) -> None:
    """What all verbs share."""


def command_line(words: list[str]) -> typer.Typer:
    """The command line; only the verb that is asked for is imported, all of them if none is."""
    app = _without_verbs()
    asked = [] if words == ["--version"] else [w for w in words[:1] if w in VERBS] or list(VERBS)
    for verb in asked:
        _add(app, verb)
    return app


def listing() -> typer.Typer:
    """The command line as far as its own help goes: what verbs there are, which cannot be run."""
    app = _without_verbs()
    for verb, (name, _) in VERBS.items():
        text = docstring_of(f"chakra_et.cli.{name}", command_name(verb), f"{verb}_verbs")
        if text is None:
            _add(app, verb)
        else:
            app.command(verb, help=_paragraphs(text), rich_help_panel=group_of(verb))(_chakra)
    return app


def _asks_for_verb(words: list[str]) -> bool:
    """Whether a verb may be run, or completed, or nothing but the version told."""
    completes = any(name.startswith("_CHAKRA") for name in os.environ)
    return completes or words == ["--version"] or any(word in VERBS for word in words)


def _without_verbs() -> typer.Typer:
    app = typer.Typer(
        name="chakra",
        help="Execution traces of machine-learning workloads: convert, check, replay, feed.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=_examples(FIRST_STEPS, "First steps:"),
    )
    app.callback()(_chakra)
    return app


def _add(app: typer.Typer, verb: str) -> None:
    """Import a verb, and add it."""
    name, options = VERBS[verb]
    load_numpy()
    module = import_module(f"chakra_et.cli.{name}")
    kept = {key: getattr(module, value) for key, value in options.items()}
    command = getattr(module, command_name(verb))
    epilog, panel = _examples(module.EXAMPLES[verb]), group_of(verb)
    if isinstance(command, typer.Typer):
        for inner in command.registered_commands:
            inner.epilog = _examples(examples_of(inner.name, module.EXAMPLES[verb]))
        app.add_typer(command, name=verb, epilog=epilog, rich_help_panel=panel)
    else:
        shown = {"help": paragraphs(command), "epilog": epilog, "rich_help_panel": panel}
        app.command(verb, **{**shown, **kept})(_with_memory(command))


def paragraphs(command: Callable[..., None]) -> str:
    """The docstring of a command, with each paragraph on one line: terminals have other widths."""
    return _paragraphs(inspect.getdoc(command) or "")


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def examples_of(inner: str | None, examples: Sequence[Example]) -> list[Example]:
    """Those of the examples of a verb that are of a verb within it."""
    return [example for example in examples if example[0].split()[2] == inner]


def _examples(examples: Sequence[Example], head: str = "Examples:") -> str:
    """Examples as help shows them: each a line, and what it does behind it."""
    return "\n\n".join([head, *(f"{words}  # {what}" for words, what in examples)])


def with_brackets(command: Any) -> Any:
    """A command, and all within it, whose help shows brackets, which Typer takes for markup."""
    for part in (command, *command.params):
        for name in ("help", "epilog"):
            if "[" in (text := getattr(part, name, None) or ""):
                from rich.markup import escape

                setattr(part, name, escape(text))
    for inner in getattr(command, "commands", {}).values():
        with_brackets(inner)
    return command


def _with_memory(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that can be told how much memory it may take."""

    def run(*, max_memory: str | None, **options: Any) -> None:
        if max_memory is not None:
            try:
                limit_memory(size_in_bytes(max_memory))
            except ValueError as error:
                raise ChakraError(f"--max-memory: {error}") from error
        verb(**options)

    own = signature(verb, eval_str=True)
    option = Parameter("max_memory", Parameter.KEYWORD_ONLY, default=None, annotation=MaxMemory)
    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own.parameters.values()
    ]
    told: Any = run
    told.__signature__ = own.replace(parameters=[*parameters, option])
    told.__annotations__ = {part.name: part.annotation for part in [*parameters, option]}
    told.__doc__ = verb.__doc__
    return run


def _end(number: int, _frame: object) -> None:
    """End as after an error, so that no half file and no other process stays behind."""
    # Some send the signal twice, to the process and to its group: once is enough.
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Run the command line; errors that a user can act on are printed, without a traceback."""
    words = sys.argv[1:]
    streams_opened()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files and nodes may hold what the terminal's encoding does not.
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _end)
    try:
        with inputs_protected(), memory_limited(), forks_allowed(), all_printed():
            app = command_line(words) if _asks_for_verb(words) else listing()
            with_brackets(typer.main.get_command(app))(prog_name="chakra")
    except ChakraError as error:
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(f"error: {error}", style="red", markup=False)
        sys.exit(error.exit_code)
    except MemoryError:
        print(f"error: out of memory. {more_memory()}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        # Files have errors of their own; what is left is the text for the terminal.
        to_nowhere(sys.stdout)
        place = error.filename or "standard output"
        print(f"error: {place}: cannot be written: {error.strerror}.", file=sys.stderr)
        sys.exit(2)
