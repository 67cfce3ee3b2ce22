"""What a benchmark program needs to run: memory as it was, waits, and a clock.

PyTorch and the standard library alone: the text of this module is part of each program.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

inf, nan = float("inf"), float("nan")
DEVICE = "cpu"
"""Where tensors lie that were recorded on an accelerator, and all others but those of the host."""
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_QUANTISED = (torch.qint8, torch.quint8, torch.qint32)
_STREAMS: dict[int, Any] = {}


def place(device: str) -> str:
    """Where a tensor lies that was recorded on a device."""
    return device if device in ("cpu", "meta") else DEVICE


def storage(size: int, dtype: str, device: str, *fill: Any) -> Any:
    """Memory of so many bytes, as a tensor of one dimension with values as `fill` tells."""
    kind = getattr(torch, dtype)
    width = torch.empty(0, dtype=kind).element_size()
    return filled(_empty(-(-size // width), kind, place(device)), *fill)


def _empty(count: int, kind: Any, device: Any) -> Any:
    """Elements in a row. Quantised ones need a scale, which no recording has."""
    if kind not in _QUANTISED:
        return torch.empty(count, dtype=kind, device=device)
    return torch._empty_affine_quantized(
        [count], scale=1.0, zero_point=0, dtype=kind, device=device
    )


def filled(memory: Any, kind: str, low: int = 0, high: int = 0) -> Any:
    """Memory with values: `range` and `offsets` from low up to high, `lengths` with a largest one
    and a sum, `some` that are true, `identity` matrices, `flags`, `floats`, `positive` numbers
    below 1; `none` leaves it as it is."""
    if kind == "range":
        return memory.random_(low, high) if high > low + 1 else memory.fill_(low)
    if kind == "offsets":
        steps = torch.arange(memory.numel(), device=memory.device)
        return memory.copy_(low + steps * (high - low) // max(memory.numel(), 1))
    if kind == "lengths":
        return memory.copy_(_lengths(memory.numel(), low, high))
    if kind == "some":
        memory.zero_()
        memory[torch.randperm(memory.numel(), device=memory.device)[:low]] = 1
        return memory
    if kind == "identity":
        memory.zero_()
        memory[: memory.numel() // low**2 * low**2].view(-1, low**2)[:, :: low + 1] = 1
        return memory
    if kind == "flags":
        return memory.random_(0, 2)
    if kind in ("floats", "positive") and memory.dtype in _FLOATS:
        return memory.uniform_(*((0, 1) if kind == "positive" else (-0.05, 0.05)))
    if kind in ("floats", "positive"):
        memory.untyped_storage().fill_(0)
    return memory


def _lengths(count: int, first: int, total: int) -> Any:
    """Integers that descend to so large a sum, as evenly as the first one lets them."""
    head = [first] if first and count else []
    rest = max(count - len(head), 1)
    tail = (total - sum(head) + rest - 1 - torch.arange(count - len(head))) // rest
    return torch.cat([torch.tensor(head, dtype=tail.dtype), tail])


def view(memory: Any, dtype: str, shape: Any, strides: Any, offset: int) -> Any:
    """A tensor in the memory of another; offset and strides in its own elements."""
    kind = getattr(torch, dtype)
    if memory.dtype == kind:
        return memory.as_strided(shape, strides, offset)
    empty = _empty(0, kind, memory.device)
    return empty.set_(memory.untyped_storage(), offset, shape, strides)


def wait(ns: int) -> None:
    """Let time pass as it did between operations: Python's own, mostly."""
    end = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end:
        pass


def spin(ns: int) -> None:
    """Stand in for an operation that does not run: the processor is busy for as long."""
    wait(ns)


def sleep(ns: int) -> None:
    """Stand in for an operation that does not run: the processor is free for as long."""
    time.sleep(ns / 1e9)


def use(stream: int) -> None:
    """Launch what follows on a stream, numbered as in the recording."""
    torch.cuda.set_stream(_stream(stream))


def follow(stream: int, other: int) -> None:
    """Let a stream wait for all that another one has been given."""
    _stream(stream).wait_stream(_stream(other))


def _stream(number: int) -> Any:
    if number not in _STREAMS:
        _STREAMS[number] = torch.cuda.Stream(DEVICE)
    return _STREAMS[number]


def synchronize() -> None:
    """Wait for the device."""
    if DEVICE.startswith("cuda"):
        torch.cuda.synchronize()


def iterate(parts: Sequence[Callable[[list[Any]], None]], t: list[Any]) -> int:
    """Run all parts once; what it took in ns."""
    synchronize()
    begin = time.perf_counter_ns()
    with torch.no_grad():
        for part in parts:
            part(t)
    synchronize()
    return time.perf_counter_ns() - begin


def set_up(device: str, seed: int, threads: int | None, recorded: int | None = None) -> None:
    """Choose the device, the seed of all random numbers, and the threads of an operator.

    Without `threads` it has as many as in the recording, but no more than PyTorch takes by itself.
    """
    global DEVICE
    DEVICE = device
    torch.manual_seed(seed)
    if threads or recorded:
        torch.set_num_threads(threads or min(recorded or 1, torch.get_num_threads()))


def _at_least_one(text: str) -> int:
    """A number of the command line that is 1 or more."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return int(text)


def _unusable(device: str) -> str:
    """Why PyTorch cannot make tensors on a device; nothing where it can."""
    try:
        torch.empty(1, device=device)
    except (AssertionError, RuntimeError) as error:
        return str(error).partition("\n")[0]
    return ""


def main(
    start: Callable[[], list[Any]],
    parts: Sequence[Callable[[list[Any]], None]],
    recorded_threads: int | None = None,
) -> None:
    """The command line of a program."""
    parser = argparse.ArgumentParser(description="Run the work of a recording, and say how long.")
    parser.add_argument("--device", default=DEVICE, help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--iterations", type=_at_least_one, default=10, help="default: %(default)s")
    parser.add_argument("--warmup", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--threads", type=_at_least_one, help="threads of an operator (default: as recorded)"
    )
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    if refused := _unusable(given.device):
        parser.error(f"--device {given.device} cannot be used: {refused}")
    set_up(given.device, given.seed, given.threads, recorded_threads)
    t = start()
    for _ in range(given.warmup):
        iterate(parts, t)
    spans = [iterate(parts, t) for _ in range(given.iterations)]
    if given.json:
        threads = torch.get_num_threads()
        print(json.dumps({"device": given.device, "threads": threads, "span_ns": spans}))
    else:
        low, middle, high = min(spans), statistics.median(spans), max(spans)
        print(
            f"{middle / 1e6:.3f} ms (median of {len(spans)}; {low / 1e6:.3f} to {high / 1e6:.3f})"
        )
