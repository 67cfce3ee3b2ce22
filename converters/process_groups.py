"""Process groups as PyTorch describes them, in host traces and in profiles alike."""

from __future__ import annotations

from typing import Any

from chakra_et.recording import GroupEntry
from chakra_et.recording.numbers import integer, parse_ranks


def group_entry(entry: Any, source: str) -> GroupEntry | None:
    """One description of a group; None for what is none."""
    if not isinstance(entry, dict) or "pg_name" not in entry:
        return None
    return GroupEntry(
        name=str(entry["pg_name"]),
        source=source,
        size=integer(entry.get("group_size", entry.get("pg_size"))) or 0,
        ranks=parse_ranks(entry.get("ranks")),
        description=str(entry.get("pg_desc", entry.get("uid", ""))),
        cut=bool(entry.get("cut")),
        number=integer(entry.get("backend_id")),
    )
