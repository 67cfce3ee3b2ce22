"""Linking: one trace of a recording's two views of the same run.

`link` goes through the rooms in this order; each reads what those before it have made.

| room | what it does |
|---|---|
| `window` | before all: cuts steps, or an annotation, out of both views |
| `joining` | which host node is which record; the table of *activities*, each to become a node |
| `communication` | which activities communicate: what, how many bytes, in which group, with whom |
| `waits` | the calls that wait, and what had been launched when they were made |
| `edges` | who waits for whom: a module or folder for each kind of edge, its whole rule in it |
| `guesses` | inferred edges held against other steps of the recording, and other ranks |
| `time` | when each node's own work begins and ends, and whose time it is |
| `output` | an order in which all edges lead forward, the trace, the report |

`activities.py` is the table that all share, `evidence.py` lists what edges rest on, and the order
in which rules name an edge that several find. `finding.py` asks the rules one after the other,
`linking.py` is the line through all rooms.

A room imports those below it alone, and nothing here knows a format: `lint-imports` holds both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.linker.linking import Linked, link

__all__ = ["Linked", "link"]

# Who only shows what edges rest on needs none of the rooms.
_HOMES: Final = {"Linked": "linking", "link": "linking"}

__getattr__ = lazily(__name__, _HOMES)
