"""Experiments on many machines: runs as tasks of Dask's distributed scheduler.

A worker's labs live in an event loop of their own beside Dask's (``worker``), so they outlast a
lost scheduler. A task of Dask is only the question for a run, by a key that follows from
experiment, order and files: the worker has it on its disk, joins it while it is being made, or
makes it. Every 5 s each worker is asked what it has of the experiment: the answer shows that it
lives, the question names the runs that are still wanted and those that are kept, and renews the
lease of 180 s without which a run ends.

The runs are distributed (``distribution``) by the user's machine or by a coordinator, a task of
Dask on one worker, which has the plan as data and runs the same pool; recordings stay on the
workers' disks. The queries of the user's machine show every worker that it is there: a coordinator
pauses then, and resumes 30 s after the last one, or at once when asked to. A worker's runs
outlast each change of hands, since orders and so keys are the same. ``python -m tests.bench
cluster`` measures the overhead, ``python -m tests.bench thousands`` results of 10,000 runs.

This is the only package that imports Dask, and only if a command line names a cluster.
"""
