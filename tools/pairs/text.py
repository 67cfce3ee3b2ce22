"""The text of a host trace and of a Kineto profile, as PyTorch 2.13 lays it out."""

from __future__ import annotations

import math

from .catalog import Kernel

PID, AUTOGRAD_TID, WATCHDOG_TID = 41250, 41893, 41477
WORLD = 8
BASE_NS = 1790857026000000000  # times in the device file count from here
START_NS = 5114338193273303
COMPUTE, COMM = 7, 20  # streams
SMS = 132


HOST_HEAD = (
    f'{{\n  "schema": "1.1.1-chakra.0.0.4", "pid": {PID}, "time": "2026-11-29 16:56:04", '
    '"start_ts": 4329307,\n  "nodes": ['
)
HOST_TAIL = '\n  ],\n  "finish_ts": {}\n}}'
EMPTY = '{"values": [], "shapes": [], "types": [], "strides": []}'
PROCESS_GROUPS = (
    r'"[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", '
    rf'\"ranks\": [], \"group_size\": {WORLD}, \"group_count\": 1}}]"'
)
RANKS = str(list(range(WORLD)))


def host_node(
    ids: tuple[int, int, int],
    name: str,
    inputs: str,
    outputs: str,
    *,
    fw_parent: int = 0,
    seq: int = -1,
    scope: int = 7,
    tids: tuple[int, int],
    schema: str = "",
    extra: str = "",
) -> str:
    node, parent, rf_id = ids
    tid, fw_tid = tids
    return (
        f'\n      {{\n        "id": {node}, "name": "{name}", "ctrl_deps": {parent},\n'
        f'        "inputs": {inputs},\n        "outputs": {outputs},\n'
        f'        "attrs": [{{"name": "rf_id", "type": "uint64", "value": {rf_id}}},'
        f'{{"name": "fw_parent", "type": "uint64", "value": {fw_parent}}},'
        f'{{"name": "seq_id", "type": "int64", "value": {seq}}},'
        f'{{"name": "scope", "type": "uint64", "value": {scope}}},'
        f'{{"name": "tid", "type": "uint64", "value": {tid}}},'
        f'{{"name": "fw_tid", "type": "uint64", "value": {fw_tid}}},'
        f'{{"name": "op_schema", "type": "string", "value": "{schema}"}},'
        '{"name": "kernel_backend", "type": "string", "value": ""},'
        '{"name": "kernel_file", "type": "string", "value": ""},'
        f'{{"name": "tensor_range", "type": "string", "value": ""}}{extra}]\n      }}'
    )


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def complete(cat: str, name: str, pid: int, tid: int, start: int, dur: int, args: str) -> str:
    return (
        f'\n  {{\n    "ph": "X",\n    "cat": "{cat}",\n    "name": "{name}",\n    "pid": {pid},\n'
        f'    "tid": {tid},\n    "ts": {us(start)},\n    "dur": {us(dur)}\n    ,\n'
        f'    "args": {{\n      {args}\n    }}\n  }},'
    )


def flow(kind: str, ident: int, pid: int, tid: int, ts: int, cat: str) -> str:
    binding = ', "bp": "e"' if kind == "f" else ""
    return (
        f'\n  {{\n    "ph": "{kind}",\n    "id": {ident},\n    "pid": {pid},\n    "tid": {tid},\n'
        f'    "ts": {us(ts)},\n    "cat": "{cat}",\n    "name": "{cat}"\n    {binding}\n  }},'
    )


def metadata(name: str, pid: int | str, tid: int, key: str, value: str | int) -> str:
    shown = f'"{value}"' if isinstance(value, str) else value
    where = f'"{pid}"' if isinstance(pid, str) else pid
    return (
        f'\n  {{\n    "ph": "M",\n    "name": "{name}",\n    "ts": {us(START_NS)},\n'
        f'    "pid": {where},\n    "tid": {tid},\n    "args": {{\n      "{key}": {shown}\n'
        "    }\n  },"
    )


def instant(name: str, pid: str, tid: str, ts: int) -> str:
    return (
        f'\n  {{\n    "ph": "i",\n    \n    "s": "g",\n    "name": "{name}",\n    "pid": "{pid}",\n'
        f'    "tid": "{tid}",\n    "ts": {us(ts)}\n    \n  }},'
    )


def device_head() -> str:
    gpu = (
        '\n    {{\n      "id": {}, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84977844224,'
        '\n      "computeMajor": 9, "computeMinor": 0,\n      "maxThreadsPerBlock": 1024, '
        '"maxThreadsPerMultiprocessor": 2048,\n      "regsPerBlock": 65536, "warpSize": 32,\n'
        '      "sharedMemPerBlock": 49152, "numSms": 132\n    , "regsPerMultiprocessor": 65536, '
        '"sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472\n    }}'
    )
    group = (
        '{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", '
        f'"pg_size": {WORLD}, "ranks": {RANKS}}}'
    )
    names = [metadata("process_name", PID, 0, "name", "python3.12")]
    names += [metadata("process_labels", PID, 0, "labels", "CPU")]
    names += [metadata("process_sort_index", PID, 0, "sort_index", PID)]
    for device in range(WORLD):
        names.append(metadata("process_name", device, 0, "name", "python3.12"))
        names.append(metadata("process_labels", device, 0, "labels", f"GPU {device}"))
        names.append(metadata("process_sort_index", device, 0, "sort_index", 16777216 + device))
    threads = ((PID, "pt_main_thread"), (AUTOGRAD_TID, "pt_autograd_0"), (WATCHDOG_TID, "pt_nccl"))
    rows = [(PID, tid, f"thread {tid} ({name})") for tid, name in threads]
    for pid, tid, name in [
        *rows,
        *((0, stream, f"stream {stream} ") for stream in (COMPUTE, COMM)),
    ]:
        names.append(metadata("thread_name", pid, tid, "name", name))
        names.append(metadata("thread_sort_index", pid, tid, "sort_index", tid))
    return (
        '{\n    "schemaVersion": 1,\n    "deviceProperties": ['
        + ",".join(gpu.format(device) for device in range(WORLD))
        + '\n    ],\n    \n      "cupti_version": 26,\n      "cuda_runtime_version": 12080,\n'
        '      "cuda_driver_version": 12080,\n      "record_shapes": 1,\n'
        f'      "distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": {WORLD}, '
        f'"pg_count": 1, "pg_config": [{group}], "nccl_version": "2.27.5"}},\n'
        '      "trace_id": "7D4A644D15B4425CAFA9A8791452D788",\n      "host_name": "host",\n'
        f'    "displayTimeUnit": "ms",\n    "baseTimeNanoseconds": {BASE_NS},\n'
        '    "traceEvents": [\n    ' + "".join(names)
    )


def device_tail(end: int) -> str:
    begin = START_NS - 74_000
    return (
        '\n  {\n    "ph": "X",\n    "cat": "Trace",\n    "name": "PyTorch Profiler (0)",\n'
        '    "pid": "Spans",\n    "tid": "PyTorch Profiler",\n'
        f'    "ts": {us(begin)},\n    "dur": {us(end - begin)}\n    ,\n'
        '    "args": {\n      "Op count": 0\n    }\n  },'
        + metadata("process_sort_index", "Spans", 0, "sort_index", 536870912)
        + instant("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", begin)
        + instant("Record Window End", "", "", end).rstrip(",")
        + '\n  ],"traceName": "trace.json" }'
    )


def kernel_args(kernel: Kernel, stream: int) -> tuple[str, str]:
    """A kernel's args, before and after its correlation."""
    blocks = math.prod(kernel.grid) / SMS
    threads = math.prod(kernel.block)
    warps = blocks * math.ceil(threads / 32)
    by_regs = 65536 // max(kernel.regs * threads, 1)
    by_smem = 233472 // max(kernel.smem + 1024, 1)
    active = max(1, min(by_regs, by_smem, 2048 // threads, 32))
    occupancy = min(100, round(100 * min(blocks, active) * threads / 2048))
    factor = "regs" if active == by_regs else "warps"
    return (
        f'      "queued": 0, "device": 0, "context": 1,      "stream": {stream}, "correlation": ',
        f',      "registers per thread": {kernel.regs},      "shared memory": {kernel.smem},      '
        f'"blocks per SM": {blocks:.6f},      "warps per SM": {warps:.6f},      '
        f'"grid": {list(kernel.grid)},      "block": {list(kernel.block)},      '
        f'"est. achieved occupancy %": {occupancy},      "occupancy": {{        '
        f'"activeBlocksPerMultiprocessor": {active},        "limitingFactors": "{factor}",        '
        f'"blockLimitRegs": {by_regs},        "blockLimitSharedMem": {by_smem},        '
        f'"blockLimitWarps": {2048 // threads},        "blockLimitBlocks": 32,        '
        f'"blockLimitBarriers": 16,        "allocatedRegistersPerBlock": {kernel.regs * threads},'
        f'        "allocatedSharedMemPerBlock": {kernel.smem + 1024}      }},      '
        '"graph id": 0, "graph node id": 0',
    )
