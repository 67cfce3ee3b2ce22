"""The command line: one module for each verb, all of it through the public library."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it without a word, also while it is being imported."""
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
    app.main()


def _without_word(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Tell errors, but not that somebody ended this."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]


__all__ = ["main"]
