"""How findings are printed, and which fail: options that verbs share."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path

from chakra_et.io.output import atomic_output
from chakra_et.validators import Severity, Validation
from chakra_et.validators.output import FORMATS, render, show


class Format(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


class FailOn(str, Enum):
    """The least severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    @property
    def severity(self) -> Severity | None:
        """The severity; None where none fails."""
        return None if self is FailOn.NEVER else Severity[self.name]


def put_findings(result: Validation, form: Format, output: Path | None, examples: int) -> None:
    """Show findings on the terminal, or write them in a form, to a file if one is named."""
    if form is Format.TEXT and output is None:
        show(result, examples)
        return
    text = render(result, FORMATS[form.value], examples)
    if output is None:
        sys.stdout.write(text)
    else:
        with atomic_output(output) as stream:
            stream.write(text.encode())
