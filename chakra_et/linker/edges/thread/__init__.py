"""Hand-over between host threads: backward operations after forward ones, and waits of threads."""
