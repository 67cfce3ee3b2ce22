"""The command line: one module for each verb, all of it through the public library."""

import gc
import sys
from typing import Final

_OBJECTS: Final = 100_000
"""After so many new objects is looked for garbage; after 700, it took a tenth of the start."""


def main() -> None:
    """Run the command line, and end the process without taking its objects apart.

    Ctrl-C ends it without a word, also while it is being imported.
    """
    gc.set_threshold(_OBJECTS)
    hook, sys.excepthook = sys.excepthook, _without_word
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until there is something to clean up, the system ends the process.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        from chakra_et.cli import app

        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        from chakra_et.cli import app
    sys.excepthook = hook
    from chakra_et.cli.ending import ended_at_once

    with ended_at_once():
        app.main()


def _without_word(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Tell errors, but not that somebody ended this."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]


__all__ = ["main"]
