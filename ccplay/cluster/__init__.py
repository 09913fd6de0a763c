"""Experiments on many machines: runs as tasks of Dask's distributed scheduler.

``labs`` is what a worker executes, ``spool`` keeps what it has finished until that is fetched,
``worker`` keeps a worker connected; ``benches`` gives orders to workers and ``places`` finds or
starts them; ``certificate`` makes what they trust each other by. The only room that imports Dask,
and only where a command line asks for a cluster. Nothing of results or statistics belongs here.
"""
