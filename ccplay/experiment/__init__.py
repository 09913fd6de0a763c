"""An experiment: the runs of a scenario, executed in parallel, kept, resumed and summarised.

A run is a function (``trial``) from a ``RunOrder``, which is data, to a ``RunOutcome``. Workers
execute runs (``pool``): this machine is one, each worker of a cluster another. The pool gives
every worker as many runs as it has room for; everything around it does not know where runs are
executed. ``plan`` lists the runs, decides how often each is made and groups their results,
``store`` keeps them in a directory, and ``runner`` drives it all. ``cluster`` has the workers on
other machines.
"""
