"""Changes of a schema or of the registry of attributes that would break readers.

    python -m chakra_et.validators.compatibility FILE...

compares each file with what git has of it in HEAD. The format grows by addition alone: a field
number, an enum number or an attribute that was ever used keeps its meaning.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from chakra_et.errors import ChakraError

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLOCK: Final = re.compile(r"\s*\b(message|enum|oneof)\s+(\w+)\s*\{|\}|;|[^{};]+")
_FIELD: Final = re.compile(r"(?:(repeated|optional|required)\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)\b")
_VALUE: Final = re.compile(r"(\w+)\s*=\s*(-?(?:0x)?\w+)")
_RESERVED: Final = re.compile(r"reserved\s+([\d\s,to]+)")
_UNCHANGEABLE: Final = ("scope", "kind", "unit")


def proto_changes(before: str, after: str) -> list[str]:
    """What a new .proto breaks of an old one."""
    old, new = _numbers(before), _numbers(after)
    reserved = _reserved(after)
    found = []
    for (block, number), what in old.items():
        now = new.get((block, number))
        if now == what:
            continue
        if now is not None:
            found.append(f"{block}: number {number} was {what!r} and would be {now!r}")
        elif number not in reserved.get(block, set()):
            found.append(f"{block}: number {number} ({what!r}) is gone and not reserved")
    return found


def registry_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What a new registry of attributes breaks of an old one."""
    found = []
    old, new = _attributes(before), _attributes(after)
    for key, was in old.items():
        now = new.get(key)
        if now is None:
            found.append(f"{key}: the attribute is gone")
            continue
        for part in _UNCHANGEABLE:
            if was.get(part) != now.get(part):
                found.append(f"{key}: {part} was {was.get(part)!r} and would be {now.get(part)!r}")
        lost = _accepted(was) - _accepted(now)
        if lost:
            found.append(f"{key}: no longer accepts {', '.join(sorted(lost))}")
    return found


def _numbers(text: str) -> dict[tuple[str, int], str]:
    """Numbers of fields and enum values by block, each with what it means."""
    found: dict[tuple[str, int], str] = {}
    stack: list[tuple[str, str]] = []
    for token in _BLOCK.finditer(_COMMENT.sub("", text)):
        if token[1]:
            stack.append((token[1], token[2]))
        elif token[0] == "}":
            if stack:
                stack.pop()
        elif stack and token[0] != ";" and not token[0].strip().startswith("reserved"):
            _add_number(found, stack, token[0].strip())
    return found


def _add_number(
    found: dict[tuple[str, int], str], stack: list[tuple[str, str]], statement: str
) -> None:
    kind = stack[-1][0]
    # The fields of a oneof are those of its message.
    block = ".".join(name for what, name in stack if what != "oneof")
    if kind == "enum":
        match = _VALUE.match(statement)
        if match and match[1] != "option":
            found[block, int(match[2], 0)] = match[1]
        return
    match = _FIELD.match(statement)
    if match:
        label = "" if match[1] in (None, "optional") else f"{match[1]} "
        found[block, int(match[4])] = f"{label}{match[2]} {match[3]}"


def _reserved(text: str) -> dict[str, set[int]]:
    """Reserved numbers by block."""
    found: dict[str, set[int]] = {}
    stack: list[str] = []
    for token in _BLOCK.finditer(_COMMENT.sub("", text)):
        if token[1]:
            stack.append(token[2])
        elif token[0] == "}":
            if stack:
                stack.pop()
        elif match := _RESERVED.match(token[0].strip()):
            numbers = found.setdefault(".".join(stack), set())
            for part in match[1].split(","):
                ends = [int(n) for n in re.findall(r"\d+", part)]
                if ends:
                    numbers.update(range(ends[0], ends[-1] + 1))
    return found


def _attributes(registry: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Attributes by scope and name; what they accept as a list of kinds."""
    kinds = registry.get("kinds", {})
    found = {}
    for entry in registry.get("attribute", []):
        accepts = entry.get("accepts", [])
        accepted = kinds.get(accepts, [accepts]) if isinstance(accepts, str) else accepts
        name = f"{entry.get('scope', 'node')} attribute {entry.get('name')}"
        found[name] = {**entry, "accepts": accepted}
    return found


def _accepted(entry: dict[str, Any]) -> set[str]:
    return set(map(str, entry["accepts"]))


def _toml(text: str) -> dict[str, Any]:
    try:
        loads = import_module("tomllib").loads
    except ImportError as error:
        raise ChakraError(
            "comparing registries needs Python 3.11 or newer", remedy="Run it with a newer one."
        ) from error
    content: dict[str, Any] = loads(text)
    return content


def compare(path: Path) -> list[str]:
    """What a file of the working tree breaks of the one in git's HEAD; nothing if that has none."""
    shown = subprocess.run(
        ["git", "show", f"HEAD:./{path.name}"],
        cwd=path.resolve().parent,
        capture_output=True,
        check=False,
    )
    if shown.returncode:
        return []
    before = shown.stdout.decode("utf-8", "replace")
    after = path.read_text("utf-8") if path.exists() else ""
    if path.suffix == ".proto":
        return proto_changes(before, after)
    return registry_changes(_toml(before), _toml(after))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare files with git's HEAD; 1 if one of them breaks readers."""
    found = [
        f"{path}: {change}"
        for path in map(Path, sys.argv[1:] if arguments is None else arguments)
        for change in compare(path)
    ]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
