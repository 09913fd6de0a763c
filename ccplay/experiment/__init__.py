"""An experiment: the runs of a scenario, executed in parallel, kept, resumed and summarised.

A run is a function (``orders``) from an ``Order``, which is data, to a ``Finished``. Benches
execute runs (``pool``): this machine is one, each worker of a cluster another. The pool gives
every bench as many runs as it has room for; everything around it does not know where runs are
executed. ``plan`` lists the runs and decides how often each is made, ``store`` keeps them in a
directory, ``grouping`` computes statistics, and ``runner`` drives it all.
"""
