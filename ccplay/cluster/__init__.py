"""Experiments on many machines: runs as tasks of Dask's distributed scheduler.

``labs`` is executed by workers, ``spool`` keeps their finished runs until they are fetched,
``worker`` keeps a worker connected; ``benches`` sends orders to workers, ``places`` finds or starts
workers; ``certificate`` makes and checks their certificate. This is the only package that imports
Dask, and only if a command line names a cluster. Results and statistics do not belong here.
"""
