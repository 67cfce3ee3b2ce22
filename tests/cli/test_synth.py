"""`chakra synth`: fit, sample, compare, and what is wrong with requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import chakra
from workloads_to_learn import training

from chakra_et import read_set
from chakra_et.build import Workload, write_workload


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a set, and its model beside it."""
    folder = tmp_path_factory.mktemp("synth")
    write_workload(Workload(tp=2, dp=2), training, folder / "run")
    done = chakra("synth", "fit", folder / "run", "-o", folder / "model.json.gz")
    assert done.code == 0, done.errors
    assert "tp 2 x dp 2: 4 steps of 4 ranks, 20 nodes each" in done.words
    assert "held-out nodes cost" in done.words
    return folder


def test_fit_tells_as_json_what_it_learned(run: Path, tmp_path: Path) -> None:
    files = sorted((run / "run").glob("*.et"))
    done = chakra("synth", "fit", *files, "-o", tmp_path / "m.json", "--json")
    told = json.loads(done.output)
    assert told["parts"][0]["ranks"] == 4
    assert told["parts"][0]["bits_per_node"]["chosen"] < 1


def test_samples_are_written_and_compared(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("synth", "sample", run / "model.json.gz", "--ranks", 4, "-o", out)
    done = chakra(*words)
    assert done.code == 0, done.errors
    assert "4 ranks on tp2-dp2: 80 nodes" in done.words
    assert chakra("validate", out, "--profile", "astra-sim", "--fail-on", "warning").code == 0
    done = chakra("synth", "compare", run / "run", out, "--fail", "--format", "json")
    assert done.code == 0, done.errors
    rows = {row["measure"]: row for row in json.loads(done.output)}
    assert rows["node types"]["value"] == 0
    assert rows["node types"]["alike"] == "yes"
    again = chakra(*words)
    assert again.code == 0
    fewer = chakra("synth", "sample", run / "model.json.gz", "--ranks", 2, "-o", out)
    assert fewer.code == 2
    assert "--force" in fewer.errors


def test_samples_for_astra_sim(run: Path, tmp_path: Path) -> None:
    done = chakra("synth", "sample", run / "model.json.gz", "--ranks", 4, "--for", "astra-sim",
                  "-o", tmp_path / "fed", "--json")  # fmt: skip
    assert json.loads(done.output)["ranks"] == 4
    assert (tmp_path / "fed" / "comm_groups.json").is_file()
    assert len(read_set(tmp_path / "fed")) == 4


def test_other_sets_fail_the_comparison(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--scale-sizes", "communication=8", "--condition", "comm-share=0.9")
    chakra("synth", "sample", run / "model.json.gz", "--ranks", 4, *words, "-o", out)
    done = chakra("synth", "compare", run / "run", out, "--fail")
    assert done.code == 1
    assert "comm_size" in done.output
    assert chakra("synth", "compare", run / "run", out).code == 0


WRONG = {
    "a file for a directory": (("sample", "M", "--ranks", 2, "-o", "x.et"), "Name a directory"),
    "a condition": (("sample", "M", "--ranks", 2, "--condition", "a=1", "-o", "x"), "batch"),
    "a factor": (("sample", "M", "--ranks", 2, "--scale-sizes", "x", "-o", "x"), "scale-sizes"),
    "both forms": (
        ("sample", "M", "--ranks", 2, "--for", "astra-sim", "--compress", "-o", "x"), "--compress"),
    "no model": (("sample", "R", "--ranks", 2, "-o", "x"), "no model"),
    "one log": (("compare", "RUN", "RUN", "--log-a", "R"), "Give both"),
    "no traces": (("fit", "nowhere", "-o", "m.json"), "nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_are_told(case: str, run: Path, tmp_path: Path) -> None:
    words, wanted = WRONG[case]
    places = {"M": run / "model.json.gz", "RUN": run / "run", "R": run / "run" / "trace.0.et",
              "x": tmp_path / "x", "x.et": tmp_path / "x.et", "nowhere": tmp_path / "nowhere",
              "m.json": tmp_path / "m.json"}  # fmt: skip
    done = chakra("synth", *(places.get(str(word), word) for word in words))
    assert done.code == 2
    assert wanted in " ".join(done.errors.split())
    assert not list(tmp_path.iterdir())
