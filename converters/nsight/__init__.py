"""Exports of NVIDIA Nsight Systems to SQLite: the device's view of one process, or of several.

Columns and ids are those of NVIDIA's "SQLite Schema Reference" in the User Guide of Nsight Systems;
names of payloads are those that NCCL registers with NVTX.
"""
