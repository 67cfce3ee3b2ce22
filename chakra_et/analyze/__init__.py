"""What a job of many ranks suffers from: clocks, skew, stragglers, hangs, the grid, utilisation."""

from chakra_et.analyze.clocks import Clock, aligned, clocks, on_clock
from chakra_et.analyze.grid import Places, grid_rows, places_of
from chakra_et.analyze.hang import Hang, Stall, find_hang
from chakra_et.analyze.job import Job
from chakra_et.analyze.mfu import Utilisation, utilisation
from chakra_et.analyze.ndtimeline import is_ndtimeline, read_segments
from chakra_et.analyze.path import Stretch, job_path
from chakra_et.analyze.skew import Skew, skews
from chakra_et.analyze.stragglers import Straggler, Work, stragglers, work_by_step

__all__ = [
    "Clock",
    "Hang",
    "Job",
    "Places",
    "Skew",
    "Stall",
    "Straggler",
    "Stretch",
    "Utilisation",
    "Work",
    "aligned",
    "clocks",
    "find_hang",
    "grid_rows",
    "is_ndtimeline",
    "job_path",
    "on_clock",
    "places_of",
    "read_segments",
    "skews",
    "stragglers",
    "utilisation",
    "work_by_step",
]
