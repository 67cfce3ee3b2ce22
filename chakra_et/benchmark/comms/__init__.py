"""The communication of a run, alone or with all operators of all ranks.

From the traces to the figures, one room after the other:

- `details`, `awaited`, `listing`: what each rank calls, and what it waits for
- `agree`, `meeting`: what the sides of a call tell each other; calls that would never meet
- `shrink`: fewer ranks than recorded
- `job`: all of that
- `values`, `buffers`, `collectives`, `running`: calls alone, with known values
- `writer`, `fewer`, `program_ranks`: calls among the operators of a program
- `world`, `rank`: one rank's process; `all_ranks`, `torchrun`: who starts them
- `figures`: what it took, beside the recording

Only those that run in a rank's process need PyTorch.
"""
