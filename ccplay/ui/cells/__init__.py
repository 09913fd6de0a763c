"""Coloured cells, and how few of them are written to the terminal."""
