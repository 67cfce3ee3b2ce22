"""What if: edits of traces, and what a replay says of them before and after."""

from chakra_et.whatif.compare import Answer, Edited, ask, edit
from chakra_et.whatif.edit import Change, Edit, MissedError
from chakra_et.whatif.edits import EDITS, FORMS, parse_edit

__all__ = [
    "EDITS",
    "FORMS",
    "Answer",
    "Change",
    "Edit",
    "Edited",
    "MissedError",
    "ask",
    "edit",
    "parse_edit",
]
