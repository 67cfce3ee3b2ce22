"""What a job of many ranks suffers from: clocks, skew, stragglers, hangs, utilisation."""

from chakra_et.analyze.clocks import Clock, aligned, clocks, on_clock
from chakra_et.analyze.hang import Hang, Stall, find_hang
from chakra_et.analyze.job import Job
from chakra_et.analyze.mfu import Utilisation, utilisation
from chakra_et.analyze.path import Stretch, job_path
from chakra_et.analyze.skew import Skew, skews
from chakra_et.analyze.stragglers import Straggler, Work, stragglers, work_by_step

__all__ = [
    "Clock",
    "Hang",
    "Job",
    "Skew",
    "Stall",
    "Straggler",
    "Stretch",
    "Utilisation",
    "Work",
    "aligned",
    "clocks",
    "find_hang",
    "job_path",
    "on_clock",
    "skews",
    "stragglers",
    "utilisation",
    "work_by_step",
]
