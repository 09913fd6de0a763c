"""Descriptions of queue disciplines: their parameters with the kernel's defaults and bounds.

Plain data; ``model.disciplines`` has their table and the functions that read it.
"""
