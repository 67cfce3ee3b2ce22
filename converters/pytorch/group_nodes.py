"""The nodes in which PyTorch lists the process groups, as text that it cuts where it is long."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from chakra_et.converters.process_groups import group_entry
from chakra_et.io.json_text import from_json
from chakra_et.recording import GroupEntry

NODE_NAME: Final = "## process_group:init ##"
_SOURCE: Final = "the host trace's process-group node"
_WALKER: Final = json.JSONDecoder(strict=False)


def groups_in(values: bytes) -> list[GroupEntry]:
    """The groups that a node lists in its first input."""
    try:
        entries = _entries(from_json(values)[0])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return []
    found = (group_entry(entry, _SOURCE) for entry in entries)
    return [entry for entry in found if entry is not None]


def _entries(text: str) -> list[Any]:
    """The groups in a list, also in one that PyTorch cut after some thousand characters."""
    try:
        entries = from_json(text)
    except msgspec.DecodeError:
        entries = []
        at = text.find("{")
        while at >= 0:
            try:
                entry, at = _WALKER.raw_decode(text, at)
            except ValueError:
                entry, at = _cut_entry(text[at:]), -1
            entries.append(entry)
            at = text.find("{", at) if at >= 0 else -1
    return entries if isinstance(entries, list) else []


def _cut_entry(text: str) -> dict[str, Any]:
    """What can be said of the group whose list of ranks was cut: its name, not its members."""
    entry: dict[str, Any] = {"cut": True}
    for key in ("pg_name", "pg_desc"):
        if match := re.search(rf'"{key}"\s*:\s*"([^"\\]{{0,200}})"', text):
            entry[key] = match[1]
    return entry
