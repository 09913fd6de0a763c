"""Coloured cells, of which only changes are written to the terminal."""
