"""Conversions of many ranks: what each takes and leaves, who performs them, what ranks tell others.

`job` is one rank's conversion, `parts` keeps what came of it until all ranks are there, `crew` has
executors perform jobs, `together` makes a run of them, `publish` gives the files their names.
"""
