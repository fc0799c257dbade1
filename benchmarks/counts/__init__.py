"""Instruction counts of the hot paths, which do not depend on what else the machine does.

`worker.py` runs every path in one process under valgrind's callgrind: first a few times, to fill caches, then once and
three times its size. A call of `os.getpgid`, which nothing else calls, marks the start and the end of each run, and
callgrind writes down the instructions between two marks. The difference of the two runs, divided by the difference of
their sizes, is the cost of one message: what a run costs once is not part of it.

Interpreters differ, so the costs are divided by that of a loop which uses no code of ours (`calibration.py`). These
ratios are kept in `recorded.json`, for each build of Python that has recorded them.
"""
