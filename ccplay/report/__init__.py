"""Reports: what is printed, drawn and exported of measured runs.

A report reads results and recordings; it starts no lab.
"""
