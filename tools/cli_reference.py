"""Write docs/cli.md from the commands themselves.

python tools/cli_reference.py            write it
python tools/cli_reference.py --check    compare; exit 1 where it differs
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from page_parts import keep_all
from typer import Typer
from typer.models import ArgumentInfo, OptionInfo

from chakra_et.cli.app import (
    FIRST_STEPS,
    GROUPS,
    VERBS,
    Example,
    MaxMemory,
    command_name,
    examples_of,
    paragraphs,
)

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# The command line

Made from the commands by `python tools/cli_reference.py`. `chakra VERB -h` shows the same.

- Exit code 0: all is well. 1: findings, or errors that no cure helps. 2: wrong use, or something
  could not be read or written; the message names file, place and remedy. 130 after Ctrl-C.
- An output whose name ends in `.et` or `.json`, with `.gz` or `.zst` if compressed, is a file; any
  other is a directory that gets a file for each rank. `-` is standard input or output.
- Reports go to standard output, and to standard error where the output itself goes there. On a
  terminal they have colours, unless NO_COLOR is set; in a pipe nothing is wrapped or cut.
- `chakra --install-completion` lets the shell complete verbs, options and files.
- All verbs but `generate` also take `--max-memory SIZE`: {memory}
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD.format(memory=get_args(MaxMemory)[1].help), _first_steps()]
    for group, verbs in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [section for verb in verbs for section in _sections(verb)]
    return "\n".join(parts)


def _first_steps() -> str:
    """Where to begin, and all verbs by group."""
    lines = ["```console", *_told(FIRST_STEPS), "```", "", "| | verbs |", "|---|---|"]
    for group, verbs in GROUPS.items():
        lines.append(f"| {group} | {', '.join(f'`{verb}`' for verb in verbs)} |")
    return "\n".join([*lines, ""])


def _sections(verb: str) -> Iterator[str]:
    """The section of a verb, or those of the verbs within it."""
    module = import_module(f"chakra_et.cli.{VERBS[verb][0]}")
    command, examples = getattr(module, command_name(verb)), module.EXAMPLES[verb]
    if not isinstance(command, Typer):
        yield _section(verb, command, examples)
        return
    for inner in command.registered_commands:
        assert inner.callback is not None
        yield _section(f"{verb} {inner.name}", inner.callback, examples_of(inner.name, examples))


def _told(examples: Sequence[Example]) -> list[str]:
    """Examples as lines of a terminal, their explanations in a column."""
    width = max((len(words) for words, _ in examples), default=0)
    return [f"$ {words:<{width}}  # {what}" for words, what in examples]


def _section(verb: str, command: Callable[..., None], examples: Sequence[Example]) -> str:
    arguments, options = _parameters(command)
    usage = " ".join(["chakra", verb, "[OPTIONS]", *(name for name, _ in arguments)])
    lines = [f"### chakra {verb}", "", paragraphs(command), "", "```console", f"$ {usage}", ""]
    lines += [*_told(examples), "```", ""]
    for title, rows in (("argument", arguments), ("option", options)):
        if rows:
            lines += [f"| {title} | |", "|---|---|"]
            lines += [f"| `{name}` | {what} |" for name, what in rows]
            lines.append("")
    return "\n".join(lines)


def _parameters(
    command: Callable[..., None],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Names and meanings of the arguments and of the options of a command."""
    arguments, options = [], []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info = get_args(hints[name])[:2]
        help_text = (info.help or "").replace("|", "\\|")
        if isinstance(info, ArgumentInfo):
            several = "..." if "list" in str(kind) else ""
            arguments.append(((info.metavar or name.upper()) + several, help_text))
        elif isinstance(info, OptionInfo):
            options.append(_option(name, parameter.default, kind, info, help_text))
    return arguments, options


def _option(name: str, default: Any, kind: Any, info: Any, help_text: str) -> tuple[str, str]:
    # Typer keeps the first of the names that an annotation gives where defaults once stood.
    given = [n for n in (info.default, *(info.param_decls or ())) if str(n).startswith("-")]
    names = ", ".join(given or [f"--{name.replace('_', '-')}"])
    (of,) = _leaves(kind)
    value = info.metavar or ""
    if issubclass(of, Enum):
        value = "|".join(str(choice.value) for choice in of)
    elif not value and of is not bool:
        value = of.__name__.upper()
    shown = f"{names} {value}".strip().replace("|", "\\|")
    if isinstance(default, Enum):
        default = default.value
    if default not in (None, False, inspect.Parameter.empty):
        help_text += f" Default: {default}."
    if default is inspect.Parameter.empty:
        help_text += " Required."
    return shown, help_text


def _leaves(kind: Any) -> list[type]:
    """The types that a value can be of, or the items of a list."""
    inner = [leaf for part in get_args(kind) for leaf in _leaves(part)]
    return inner or [kind] * (kind is not type(None))


def main() -> int:
    """Write or compare the page."""
    return keep_all(PAGE, page(), check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
