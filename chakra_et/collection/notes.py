"""What each process of a program tells of itself, for the command that has started it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

STARTED, TORCH, STEPS, ENDED = "started", "torch", "steps", "ended"
"""How far a process came: Python runs, PyTorch is there, the optimizer has stepped, the end."""


@dataclass
class Note:
    """How far a process came, and what went wrong."""

    reached: str
    process: int = field(default_factory=os.getpid)
    rank: int | None = None
    problems: list[str] = field(default_factory=list)


def write_note(directory: str | None, note: Note) -> None:
    """Tell it, if anybody reads; a note that cannot be written must not disturb the program."""
    if directory is None:
        return
    path = Path(directory, f"{note.process}.json")
    with suppress(OSError):
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(note)))
        draft.replace(path)


def read_notes(directory: Path) -> list[Note]:
    """All notes, by process."""
    notes = [Note(**json.loads(path.read_text())) for path in directory.glob("*.json")]
    return sorted(notes, key=lambda note: note.process)


def warn(text: str) -> None:
    """Say something on standard error, which may be closed."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"chakra: {text}", file=sys.stderr, flush=True)
