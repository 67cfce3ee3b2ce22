"""What if: edits of traces, and what a replay says of them before and after."""

from chakra_et.whatif.compare import Answer, Edited, ask, edit
from chakra_et.whatif.edit import Change, Edit, MissedError
from chakra_et.whatif.edits import EDITS, FORMS, parse_edit
from chakra_et.whatif.search import USUAL, Found, Trial, parse_choice, search

__all__ = [
    "EDITS",
    "FORMS",
    "USUAL",
    "Answer",
    "Change",
    "Edit",
    "Edited",
    "Found",
    "MissedError",
    "Trial",
    "ask",
    "edit",
    "parse_choice",
    "parse_edit",
    "search",
]
