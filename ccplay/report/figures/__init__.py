"""Figures for pages and papers; only this package imports matplotlib."""
