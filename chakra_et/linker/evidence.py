"""What edges rest on, and which rule names an edge: the one table of each."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask
from chakra_et.model import EdgeKind

Codes = npt.NDArray[np.uint8]


class Evidence(IntEnum):
    """What tells of an edge; those of one kind of edge stand together, the best first.

    `kind` is the kind of edge, `label` what a report calls the evidence, without a comma; `guess`
    says that it makes the edge an inferred one.
    """

    kind: EdgeKind
    label: str
    guess: bool

    def __new__(cls, kind: EdgeKind, label: str, guess: bool = False) -> Evidence:
        """The next member; its number is its place in the table."""
        code = len(cls.__members__)
        member = int.__new__(cls, code)
        member._value_ = code
        member.kind, member.label, member.guess = kind, label, guess
        return member

    CALL_PARENT = EdgeKind.CALL, "parent in the host trace"
    CALL_LAUNCH = EdgeKind.CALL, "caller of the launch"
    CALL_NESTING = EdgeKind.CALL, "nesting in time"
    CALL_ARROW = EdgeKind.CALL, "arrow to the work"
    CALL_ID = EdgeKind.CALL, "External id or record-function id"
    CALL_FILE = EdgeKind.CALL, "the file itself"
    PROGRAM_STARTS = EdgeKind.PROGRAM, "order of starts"
    PROGRAM_NUMBERS = EdgeKind.PROGRAM, "order of numbers in the host trace"
    THREAD_RECORD_FUNCTION = EdgeKind.THREAD, "record function id"
    THREAD_FLOW = EdgeKind.THREAD, "fwdbwd flow"
    THREAD_SEQUENCE = EdgeKind.THREAD, "sequence number"
    THREAD_NAMES = EdgeKind.THREAD, "names and shapes", True
    THREAD_TIMES = EdgeKind.THREAD, "times", True
    THREAD_BEGINS = EdgeKind.THREAD, "first of its thread", True
    LAUNCH_CORRELATION = EdgeKind.LAUNCH, "correlation id"
    LAUNCH_ARROW = EdgeKind.LAUNCH, "arrow to the work"
    STREAM_ORDER = EdgeKind.STREAM, "order of starts"
    STREAM_OVERLAP = EdgeKind.STREAM, "times around an overlap"
    EVENT_RECORD = EdgeKind.EVENT, "record of the wait with the event's call"
    EVENT_ARROW = EdgeKind.EVENT, "arrow between nodes of a graph"
    EVENT_STREAM = EdgeKind.EVENT, "record of the wait without the event's call", True
    EVENT_LAUNCHED_LAST = (
        EdgeKind.EVENT,
        "record of the wait with the event's call but no stream",
        True,
    )
    EVENT_CALL = EdgeKind.EVENT, "call that makes the stream wait", True
    EVENT_CALL_TIMES = EdgeKind.EVENT, "call that makes some stream wait and times", True
    EVENT_GRAPH = EdgeKind.EVENT, "times inside a graph", True
    EVENT_ORPHANS = EdgeKind.EVENT, "times of work without a launch", True
    EVENT_HABIT = EdgeKind.EVENT, "habit of process groups", True
    EVENT_HABIT_TIMES = EdgeKind.EVENT, "habit of process groups and times", True
    SYNC_COPY = EdgeKind.SYNC, "blocking copy"
    SYNC_RECORD = EdgeKind.SYNC, "record of the wait"
    SYNC_DEVICE = EdgeKind.SYNC, "call for the whole device"
    SYNC_FILE = EdgeKind.SYNC, "the file itself"
    SYNC_LAUNCHED_LAST = (
        EdgeKind.SYNC,
        "record of the wait with the event's call but no stream",
        True,
    )
    SYNC_TIMES = EdgeKind.SYNC, "end during the call", True
    SYNC_LAST_USED = EdgeKind.SYNC, "stream that the thread used last", True
    DATA_STORAGE = EdgeKind.DATA, "id of the storage"
    DATA_ONLY_TIE = EdgeKind.DATA, "only tie between two streams", True
    DATA_WHOLE = EdgeKind.DATA, "memory in too many parts", True
    GROUP_ORDER = EdgeKind.GROUP, "order in the group"


class Rule(IntEnum):
    """The rules that find edges. Of two edges between the same nodes, that of the first counts.

    An edge that was recorded counts before one that was inferred, whatever the rule. What others
    may imply comes last: where it is left out, it hides no other kind.
    """

    CALL = 0
    PROGRAM = 1
    THREAD_WAIT = 2
    LAUNCH = 3
    STREAM = 4
    STREAM_PIECE = 5
    BLOCKING_COPY = 6
    SYNC = 7
    EVENT = 8
    GROUP = 9
    DATA = 10
    INFERRED_EVENT = 11
    FORWARD_BACKWARD = 12


_GUESSED: Final = np.array([evidence.guess for evidence in Evidence], np.bool_)


def guessed(codes: Codes) -> Mask:
    """Which of some evidences make their edge an inferred one."""
    mask: Mask = _GUESSED[codes]
    return mask


def counted(codes: Codes) -> dict[Evidence, int]:
    """How many edges rest on each evidence that occurs, in the order of the table."""
    found = np.bincount(codes, minlength=len(Evidence)).tolist()
    return {evidence: found[evidence] for evidence in Evidence if found[evidence]}
