"""The picture of docs/edges.md shows what the linker makes of that run today."""

from __future__ import annotations

import re
from pathlib import Path

import edges_picture
from places import ROOT

from chakra_et import convert


def test_the_picture_and_its_numbers_are_current(data: Path) -> None:
    run = data / "dlrm8"
    trace = convert(run / "host.0.json.gz", run / "device.0.json.gz").trace
    drawn = edges_picture.picture(edges_picture.step_of(trace))
    assert (ROOT / "docs" / "edges.svg").read_text("utf-8") == drawn, (
        "python tools/edges_picture.py"
    )
    page = (ROOT / "docs" / "edges.md").read_text("utf-8")
    (nodes,) = re.findall(r"has ([\d,]+) nodes", page)
    assert int(nodes.replace(",", "")) == len(trace.nodes)
