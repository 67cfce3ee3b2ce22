"""The communication of a run as a benchmark: its collectives and messages, without the model.

`listing` takes them from traces, `meeting` finds those that would never meet, `shrink` fits them to
fewer ranks; none of these needs PyTorch. `world`, `collectives` and `running` run them.
"""
