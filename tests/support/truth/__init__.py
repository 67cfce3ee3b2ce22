"""Truth by construction: programs, a machine for them, and the files of a profiler."""
