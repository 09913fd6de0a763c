"""Figures for pages and papers; the only room that imports matplotlib."""
