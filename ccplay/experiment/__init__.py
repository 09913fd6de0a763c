"""An experiment: the runs of a scenario, executed in parallel, kept, resumed and summarised.

``plan`` lists the runs, ``trial`` executes one, ``pool`` several in parallel, ``agenda`` decides
how often; ``store`` keeps them in a directory, ``grouping`` computes statistics, and ``runner``
drives it all.
"""
