"""An experiment: the runs of a scenario, side by side, kept, gone on with and summed up.

``plan`` says what is run, ``trial`` runs one, ``pool`` several at a time, ``agenda`` how often;
``store`` keeps them in a directory, ``gather`` sums them up, ``conduct`` does all of it.
"""
