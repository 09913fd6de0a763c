"""An experiment: the runs of a scenario, executed in parallel, kept, resumed and summed up.

``plan`` lists the runs, ``trial`` executes one, ``pool`` several in parallel, ``agenda`` decides
how often; ``store`` keeps them in a directory, ``grouping`` sums them up, ``runner`` drives all.
"""
