"""Record small PyTorch runs on the CPU, each as a pair of files for `chakra convert`.

    python tools/record_pairs.py mlp|transformer|ddp|all -o DIR [--gzip]

A pair is the host execution trace (`host.<rank>.json`) and the Kineto profile
(`device.<rank>.json`) of the same window of the same process. The runs are seeded and use one
thread, so that two recordings differ in times and ids only.
"""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn
    from torch.nn import functional
    from torch.nn.parallel import DistributedDataParallel
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
except ImportError as error:
    sys.exit(f"{error}\nRecording needs PyTorch: pip install 'chakra-et[torch]'")

MLP_STEPS = 1
TRANSFORMER_STEPS = 3
DDP_STEPS = 3
DDP_RANKS = 2
DDP_TIMEOUT = timedelta(seconds=120)

# The recorder runs two steps unseen: the profiler warms up, and DDP, which sorts its gradient
# buckets anew after the first backward pass, settles.
UNSEEN_STEPS = 2

# Gloo's threads close the range of a collective a moment after the result is there. A range that
# is still open at the end of the window is missing in the host trace.
DDP_PAUSE_S = 0.05

Step = Callable[[], None]


@dataclass(frozen=True)
class Pair:
    """The two files of one process."""

    host: Path
    device: Path


def record(
    step: Step,
    directory: Path,
    *,
    steps: int,
    rank: int = 0,
    compress: bool = False,
    pause_s: float = 0.0,
) -> Pair:
    """Record `steps` calls of `step`, after a few unseen ones, as the pair of `rank`.

    The window closes `pause_s` after the last call.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pair = Pair(directory / f"host.{rank}.json", directory / f"device.{rank}.json")
    torch.set_num_threads(1)
    observer = ExecutionTraceObserver()
    observer.register_callback(str(pair.host))
    try:
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=UNSEEN_STEPS - 1, active=steps, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(pair.device)),
            record_shapes=True,
            execution_trace_observer=observer,
        ) as profiler:
            for left in reversed(range(UNSEEN_STEPS + steps)):
                step()
                if not left:
                    time.sleep(pause_s)
                profiler.step()
    finally:
        observer.unregister_callback()
    _forget_the_machine(pair.device)
    return Pair(_gzip(pair.host), _gzip(pair.device)) if compress else pair


def record_mlp(directory: Path, *, compress: bool = False) -> list[Pair]:
    """A three-layer perceptron, one step of SGD."""
    return [record(_mlp_step(), directory, steps=MLP_STEPS, compress=compress)]


def record_transformer(directory: Path, *, compress: bool = False) -> list[Pair]:
    """A two-block language model with causal attention, a few steps of AdamW."""
    return [record(_transformer_step(), directory, steps=TRANSFORMER_STEPS, compress=compress)]


def record_ddp(directory: Path, *, compress: bool = False) -> list[Pair]:
    """A perceptron under DistributedDataParallel: ranks over gloo, one bucket per layer."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = mp.spawn(
        _record_ddp_rank, (store.port, directory, compress), nprocs=DDP_RANKS, join=False
    )
    deadline = time.monotonic() + DDP_TIMEOUT.total_seconds()
    while not ranks.join(timeout=1):
        if time.monotonic() > deadline:
            for process in ranks.processes:
                process.kill()
            raise TimeoutError(f"{DDP_RANKS} ranks did not finish within {DDP_TIMEOUT}")
    suffix = ".json.gz" if compress else ".json"
    return [
        Pair(directory / f"host.{rank}{suffix}", directory / f"device.{rank}{suffix}")
        for rank in range(DDP_RANKS)
    ]


RECORDERS = {"mlp": record_mlp, "transformer": record_transformer, "ddp": record_ddp}


def mlp(*widths: int, bias: bool = True) -> nn.Sequential:
    """Linear layers of these widths with a ReLU after each but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs, bias=bias), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def ddp_model() -> nn.Sequential:
    """The model of `record_ddp`; its smallest layer fills a bucket (see `_record_ddp_rank`)."""
    return mlp(32, 64, 64, 16, bias=False)


def _mlp_step() -> Step:
    torch.manual_seed(0)
    model = mlp(32, 64, 64, 10)
    return _training_step(model, torch.randn(16, 32), torch.randint(10, (16,)))


def _training_step(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def _transformer_step(vocabulary: int = 128, width: int = 64, length: int = 16) -> Step:
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    model = nn.ModuleDict(
        {
            "embedding": nn.Embedding(vocabulary, width),
            "blocks": nn.TransformerEncoder(block, 2),
            "head": nn.Linear(width, vocabulary),
        }
    )
    tokens = torch.randint(vocabulary, (4, length + 1))
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        hidden = model["blocks"](model["embedding"](tokens[:, :-1]), mask=mask, is_causal=True)
        logits = model["head"](hidden)
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def _record_ddp_rank(rank: int, port: int, directory: Path, compress: bool) -> None:
    _stay_on_loopback()
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=DDP_TIMEOUT)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=DDP_RANKS, timeout=DDP_TIMEOUT
    )
    try:
        torch.manual_seed(rank)
        model = ddp_model()
        smallest = min(p.numel() * p.element_size() for p in model.parameters())
        parallel = DistributedDataParallel(model, bucket_cap_mb=smallest / 2**20)
        step = _training_step(parallel, torch.randn(16, 32), torch.randint(16, (16,)))
        record(
            step,
            directory,
            steps=DDP_STEPS,
            rank=rank,
            compress=compress,
            pause_s=DDP_PAUSE_S,
        )
    finally:
        dist.destroy_process_group()


def _stay_on_loopback() -> None:
    """Keep gloo from binding to whatever the host's name resolves to."""
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)


def _forget_the_machine(device: Path) -> None:
    """Kineto writes the host's name and the file's full path; neither belongs in a recording."""
    text = device.read_text()
    text = re.sub(r'("host_name": )"[^"]*"', r'\1"host"', text)
    text = re.sub(r'("traceName": )"[^"]*"', rf'\1"{device.name}"', text)
    device.write_text(text)


def _gzip(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    with (
        path.open("rb") as plain,
        packed.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream,
    ):
        shutil.copyfileobj(plain, stream)
    path.unlink()
    return packed


def _account(pairs: list[Pair]) -> Iterator[str]:
    """One line per file: its name, its size and how much is in it."""
    for pair in pairs:
        for path, key, noun in (
            (pair.host, "nodes", "nodes"),
            (pair.device, "traceEvents", "events"),
        ):
            data = path.read_bytes()
            content = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
            yield f"{path}  {len(data):,} bytes  {len(content[key]):,} {noun}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=[*RECORDERS, "all"])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--gzip", action="store_true", help="write .json.gz")
    options = parser.parse_args()
    chosen = RECORDERS if options.kind == "all" else [options.kind]
    for kind in chosen:
        directory = options.output / kind if options.kind == "all" else options.output
        for line in _account(RECORDERS[kind](directory, compress=options.gzip)):
            print(line)


if __name__ == "__main__":
    main()
