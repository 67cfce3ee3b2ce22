"""docs/faults.md names tests that exist, and each of its rows names one."""

from __future__ import annotations

import re

from places import ROOT

SECTION = re.compile(r"^Tests in `(\S+)`, unless", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+)`(?: \(`(\S+)`\))?")


def test_every_fault_is_held_by_tests_that_exist() -> None:
    text = (ROOT / "docs" / "faults.md").read_text("utf-8")
    for section in text.split("\n## ")[1:]:
        (usual,) = SECTION.findall(section)
        for row in re.findall(r"^\| (?!fault|---).*$", section, re.MULTILINE):
            named = NAMED.findall(row)
            assert named, f"no test in: {row}"
            for test, file in named:
                content = (ROOT / (file or usual)).read_text("utf-8")
                assert f"def {test}(" in content, f"{file or usual} has no {test}"
