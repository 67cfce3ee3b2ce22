"""What a reader of the documentation has at hand: small files by the names that pages use."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any, Final

from command import chakra
from doc_blocks import blocks
from nsight import Export
from places import EXAMPLES, ROOT
from runs import built, straggler

import chakra_et
from chakra_et.estimate import Machine, Measured, load_constants
from chakra_et.loading import load
from chakra_et.network import load_topology
from chakra_et.replay import replay
from chakra_et.workloads import Plan, device, load_model

MODEL: Final = 'name = "Small"\nlayers = 8\nhidden = 64\nheads = 8\nffn = 128\nvocabulary = 512\n'
"""Stands in for models of 7 to 175 billion parameters."""
RECORDED: Final = ("run", "recorded", "recordings", "dlrm8", "resnet", "bert")
SETS: Final = ("DIR", "DIR1", "DIR2", "traces", "before", "after", "few", "OUT")
TABLES: Final = ("table.json", "a100.json", "h100.json")
ETS: Final = ("trace.0.et", "trace.et", "t.et", "a.et", "b.et")
COLUMNS: Final = (
    "Layername comp_time input_loc input_size weight_loc weight_size output_loc output_size "
    "comm_type comm_size misc"
)
TEXTS: Final = {
    "small.toml": MODEL,
    "workload.txt": (
        "DATA\n1\n"
        "a -1 300 NONE 0 300 NONE 0 300 ALLREDUCE 1024 98\n"
    ),
    "mlp.txt": (
        "HYBRID_DLRM 1\n2\n"
        "a -1 300 ALLTOALL 98304 300 ALLTOALL 98304 300 NONE 0 98\n"
        "b -1 300 NONE 0 300 NONE 0 300 ALLREDUCE 1024 98\n"
    ),
    "aicb.txt": (
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 "
        "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n"
        "2\n"
        "embedding_layer -1 7000 ALLREDUCE 512 1 NONE 0 9000 NONE 0 100\n"
        "optimizer1 -1 0 ALLREDUCE 4 0 NONE 0 0 NONE 0 100\n"
    ),
    "batch.txt": (
        f"COLOCATED\t\tmodel_parallel_NPU_group: 1\n1\n{COLUMNS}\n"
        "embedding_0 5386 REMOTE:0 40 LOCAL 1050673152 LOCAL 81920 NONE 0 NONE\n"
    ),
    "allreduce.xml": (
        '<algo name="pass" nchannels="1" nchunksperloop="2" proto="Simple" ngpus="2"'
        ' coll="allreduce">\n'
        + "".join(
            f'<gpu id="{rank}" i_chunks="2" o_chunks="2" s_chunks="0">'
            f'<tb id="0" send="{1 - rank}" recv="{1 - rank}" chan="0">'
            + "".join(
                f'<step s="{number}" type="{kind}" srcbuf="i" srcoff="{chunk}" dstbuf="i" '
                f'dstoff="{chunk}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
                for number, (kind, chunk) in enumerate(
                    [("s", rank), ("rrcs", 1 - rank), ("r", rank)]
                )
            )
            + "</tb></gpu>\n"
            for rank in range(2)
        )
        + "</algo>\n"
    ),
}  # fmt: skip


def stock(folder: Path) -> None:
    """Put all of it into a folder."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    _files_of_pages(folder)
    (folder / "examples").symlink_to(EXAMPLES)
    for name in RECORDED:
        shutil.copytree(EXAMPLES / "ddp_2rank", folder / name)
    _recordings(folder)
    traces = load(EXAMPLES / "ddp_2rank")
    first = folder / SETS[0]
    first.mkdir()
    for rank, trace in traces.items():
        chakra_et.write(trace, first / f"trace.{rank}.et")
    for name in SETS[1:]:
        shutil.copytree(first, folder / name)
    for name in ETS:
        shutil.copy(first / "trace.0.et", folder / name)
    shutil.copy(first / "trace.1.et", folder / "trace.1.et")
    (folder / "key").write_text("0123456789abcdef" * 4)
    _simulated(folder)
    _measured(folder / "RECORDS")
    small = ("--model", folder / "small.toml", "--tp", 2, "--dp", 2)
    assert chakra("generate", "llm", *small, "-o", folder / "set").code == 0
    assert chakra("fit", first, "-o", folder / TABLES[0]).code == 0
    for name in TABLES[1:]:
        shutil.copy(folder / TABLES[0], folder / name)
    for place in ("SIM/extern/chakra", "astra-sim/extern/graph_frontend/chakra", "path/to/chakra"):
        (folder / place).mkdir(parents=True)


def _files_of_pages(folder: Path) -> None:
    """Files that pages show in full."""
    shown = {
        "gpt-13b.toml": ("docs/generate.md", "GPT-13B"),
        "cluster.toml": ("docs/estimate.md", ""),
    }
    for name, (page, holds) in shown.items():
        (text,) = [b.text for b in blocks(page) if b.language == "toml" and holds in b.text]
        (folder / name).write_text(text)
    policies = ROOT / "chakra_et" / "anonymise" / "policies"
    shutil.copy(policies / "publish.toml", folder / "mine.toml")


def _recordings(folder: Path) -> None:
    for kind in ("host", "device"):
        content = gzip.decompress((EXAMPLES / "ddp_2rank" / f"{kind}.0.json.gz").read_bytes())
        for name in (f"{kind}.json", f"{kind}.0.json"):
            (folder / name).write_bytes(content)
    shutil.copy(EXAMPLES / "simple_add" / "device.json.gz", folder / "profile.json.gz")
    with zipfile.ZipFile(folder / "run.zip", "w") as archive:
        for path in (EXAMPLES / "ddp_2rank").iterdir():
            archive.write(path, path.name)
    Export().launched("gemm<float>", 101, 157, 1003, 1).write(folder / "report.sqlite")


def _simulated(folder: Path) -> None:
    """Traces, and what ASTRA-sim said of them."""
    (folder / "fed").mkdir()
    for rank, trace in replay(built(straggler)).traces.items():
        chakra_et.write(trace, folder / "fed" / f"trace.{rank}.et")
    (folder / "log").mkdir()
    log = ROOT / "tests" / "simulation" / "straggler.log"
    for name in ("log/log.log", "out.txt"):
        shutil.copy(log, folder / name)


def _measured(path: Path) -> None:
    """Two steps of two ranks, as ndtimeline records them."""
    made = [
        {"rank": rank, "metric": "forward-compute", "step": step, "start_ts": [1.7e9 + step],
         "duration": [0.01], "stage": 0, "dp_rank": rank, "tp_rank": 0, "ip": "10.0.0.1"}
        for rank in range(2) for step in range(2)
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, made)) + "\n")


def names() -> dict[str, Any]:
    """What pages take as given in Python, in the folder of the stock."""
    plan = Plan(model=load_model(Path("small.toml")), tp=2)
    machine = Machine(device("a100"), load_topology("dgx-a100"), load_constants())
    return {
        "chakra_et": chakra_et,
        "trace": chakra_et.read("trace.0.et"),
        "other": chakra_et.read("trace.1.et"),
        "traces": chakra_et.read_set("traces"),
        "secret": bytes(range(32)),
        "plan": plan,
        "machine": machine,
        "known": [(plan, 1_000_000), (Plan(model=plan.model, tp=2, dp=2), 2_000_000)],
        "Measured": Measured,
    }


def smaller(line: str, used: set[str]) -> str:
    """A command line with small things in place of large ones; `used` gets what was replaced."""
    for pattern, replacement in SMALLER.items():
        line, count = re.subn(pattern, replacement, line)
        if count:
            used.add(pattern)
    return line


SMALLER: Final = {
    r"--model (llama|gpt3)\S*": "--model small.toml",
    r"--dp (32|128)\b": "--dp 2",
    r"--zero 2": "--zero 1",
    r"'4->512'|'2->128'|'2->8'": "'2->4'",
    r"--dp (512|64)\b": "--dp 4",
    r"--grid dp8": "--grid dp2",
    r"--(node|around) (812|7704)": r"--\1 104",
    r"straggler=3:": "straggler=1:",
    r"--ranks 0-7": "--ranks 0-1",
    r"--tp 8 --pp [48]": "--tp 2 --pp 2",
    r"whatif DIR --set layers=48 --set dp=16": "whatif set --set layers=16 --set dp=4",
    r"whatif DIR --set bucket": "whatif set --set bucket",
    r"repeat:name=layer=": "repeat:name=aten::linear=",
}
"""Models, scales and ids of long runs, as patterns, and what stands for each in a small run."""
