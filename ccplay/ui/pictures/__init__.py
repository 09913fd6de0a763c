"""Pictures and casts of the screen, with or without a terminal.

This room reads the drawn screen: no panel, plot or dialog belongs here.
"""
