"""Figures for pages and papers; only this room imports matplotlib."""
