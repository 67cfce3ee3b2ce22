"""Exports: timelines for Perfetto and Chrome, parts of the graph for Graphviz and others.

>>> from chakra_et.export.timeline import timeline
>>> from chakra_et.export.perfetto import perfetto
>>> b"".join(perfetto(timeline(traces)))
"""
