"""Regular expressions that are compiled when they are first used: most files need few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, for the level of a module: it is compiled by its first use."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(source, flags))


class _Uncompiled(Generic[AnyStr]):
    """Stands for a pattern; each method is looked up once, and is the pattern's own from then."""

    def __init__(self, source: AnyStr, flags: int) -> None:
        self._source: AnyStr = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found
