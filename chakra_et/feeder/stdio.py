"""The service over standard input and output: each message with its length before it."""

from __future__ import annotations

from typing import BinaryIO

from chakra_et.converters.et.wire import WireError, varint
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.messages import ErrorMessage, Reply, Request
from chakra_et.feeder.session import Session


def serve(session: Session, source: BinaryIO, sink: BinaryIO, max_request: int) -> None:
    """Answer requests until the input ends.

    A request that is no message is answered with an error; one that is too long, or cut off, ends
    the service after that answer, as nothing tells where the next one would begin.
    """
    while True:
        try:
            data = read_frame(source, max_request)
        except FeederError as error:
            _send(sink, Reply(error=ErrorMessage(error.code, str(error))))
            return
        if data is None:
            return
        try:
            reply = session.answer(Request.decode(data))
        except WireError as error:
            reply = Reply(
                error=ErrorMessage(Code.MALFORMED, f"the request is not a message: {error}")
            )
        _send(sink, reply)


def _send(sink: BinaryIO, reply: Reply) -> None:
    write_frame(sink, reply.encode())


def write_frame(sink: BinaryIO, data: bytes) -> None:
    """Write a message with its length before it."""
    sink.write(varint(len(data)) + data)
    sink.flush()


def read_frame(source: BinaryIO, max_size: int) -> bytes | None:
    """The next message, or None at the end. Raises FeederError when it is cut off or too long."""
    size = shift = 0
    while True:
        byte = source.read(1)
        if not byte:
            if shift:
                raise FeederError(Code.TRUNCATED, "the input ends inside a length")
            return None
        size |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            break
        if shift >= 70:
            raise FeederError(Code.MALFORMED, "a length of more than ten bytes")
    if size > max_size:
        raise FeederError(Code.TOO_LARGE, f"a message of {size} bytes; {max_size} are allowed")
    data = source.read(size)
    if len(data) < size:
        raise FeederError(Code.TRUNCATED, "the input ends inside a message")
    return data
