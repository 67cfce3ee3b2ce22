"""What if: edits of traces, and what a replay says of them before and after."""

from chakra_et.whatif.compare import Answer, ask
from chakra_et.whatif.edit import Change, Edit
from chakra_et.whatif.edits import EDITS, parse_edit

__all__ = ["EDITS", "Answer", "Change", "Edit", "ask", "parse_edit"]
