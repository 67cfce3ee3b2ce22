"""What a record stands for in the graph, and what kind of it."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """What a record stands for in the graph."""

    OP = 0
    """An operation or annotation of the framework, on a host thread."""
    CALL = 1
    """A call of the device's runtime or driver, on a host thread."""
    WORK = 2
    """Work on a device: a kernel, a copy, a memset."""
    SYNC = 3
    """A record of waiting: evidence for edges, not work."""


class Kind(IntEnum):
    """What a record is beyond its role, where anything depends on it."""

    OTHER = 0

    ROOT = 1
    """No operation: it stands for the process or for a thread."""
    GROUPS = 2
    """No operation: it lists the process groups."""
    ANNOTATION = 3
    """A span that a program names: it encloses operations and is none itself."""
    COLLECTIVE = 4
    """The record of a collective or a message, inside the operation that asked for it."""
    GENERATED = 5
    """A generated kernel, which may write any of its arguments."""
    UNRECORDED = 6
    """No operation: it stands for a caller that the file names and does not hold."""

    WAIT_STREAM = 10
    """The host waits until a stream has done what it was given."""
    WAIT_DEVICE = 11
    """The host waits until all streams of a device have."""
    WAIT_EVENT = 12
    """The host waits for an event."""
    FREE = 13
    """The driver may wait for the whole device before it gives memory back."""
    STREAM_WAIT = 14
    """A stream is made to wait for an event; the host goes on."""
    RECORD = 15
    """An event is recorded on a stream."""
    POLL = 16
    """The host asks whether a stream or an event is done, and goes on."""
    PASSIVE = 17
    """The call gives a device no work and waits for none."""

    COPY = 20
    """Work that copies memory."""
    FILL = 21
    """Work that sets memory."""
