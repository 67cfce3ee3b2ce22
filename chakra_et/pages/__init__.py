"""Pages about runs: one HTML file that opens offline and says what limits a run, and why.

>>> from chakra_et.pages import write_report
>>> write_report("traces/", "report.html").sentence
"""

from chakra_et.pages.limits import Verdict
from chakra_et.pages.report import make_page, write_report

__all__ = ["Verdict", "make_page", "write_report"]
