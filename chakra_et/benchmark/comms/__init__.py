"""The communication of a run as a benchmark: its collectives and messages, without the model.

From the traces to the figures, one room after the other:

- `details`, `awaited`, `listing`: what each rank calls, and what it waits for
- `agree`, `meeting`: what the sides of a call tell each other; calls that would never meet
- `shrink`: fewer ranks than recorded
- `values`: known values, in and out
- `world`, `buffers`, `collectives`, `running`, `rank`: one rank's process, with PyTorch
- `figures`: what it took, beside the recording
- `job`: all of it
"""
