"""Record after record from blocks of bytes."""

from __future__ import annotations

from collections.abc import Iterator

from chakra_et.converters.et.first_record import TWICE, is_metadata
from chakra_et.feeder import errors
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.frames import cut, metadata_record


class Reader:
    """The node records of a trace; the metadata record is put aside."""

    def __init__(self, blocks: Iterator[bytes], max_record: int) -> None:
        self._blocks = blocks
        self._max_record = max_record
        self._data = b""
        self._at = 0
        self._base = 0  # offset of the data's first byte in the input
        self._first = True
        self.metadata = b""
        self.record_offset = 0

    def next(self) -> bytes | None:
        """The next node record, or None at the end."""
        if self._first:
            first = self._cut()
            if first is None:
                raise errors.truncated(0)
            self.metadata = metadata_record(first, self.record_offset)
            self._first = False
        record = self._cut()
        if record and is_metadata(record, 0, len(record)):
            raise errors.malformed(self.record_offset, TWICE)
        return record

    def _cut(self) -> bytes | None:
        while True:
            self.record_offset = self._base + self._at
            if self._at < len(self._data):
                try:
                    begin, end = cut(
                        self._data, self._at, len(self._data), self._base, self._max_record
                    )
                except FeederError as error:
                    if error.code is not Code.TRUNCATED or not self._more():
                        raise
                else:
                    self._at = end
                    return self._data[begin:end]
            elif not self._more():
                return None

    def _more(self) -> bool:
        """Append at least as much as is left, so that one huge record costs no quadratic time."""
        rest = self._data[self._at :]
        parts = [rest]
        wanted, got = max(1, len(rest)), 0
        while got < wanted and (block := next(self._blocks, b"")):
            parts.append(block)
            got += len(block)
        if got == 0:
            return False
        self._base += self._at
        self._data, self._at = b"".join(parts), 0
        return True
