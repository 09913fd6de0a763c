"""An evaluation: what RFCs ask of a congestion control or a queue discipline, measured and judged.

Each criterion is a scenario with a table ``[evaluation]``, found by being in a folder; nothing here
knows one by name. ``criteria`` loads them for a subject and judges what their runs measured, which
is pure; ``evaluating`` makes the runs by ``experiment``'s runner and prints the table;
``evaluation_page`` writes the page. Metrics are ``analysis``'s, and nothing is measured here.
"""
