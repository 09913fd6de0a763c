"""Pictures and casts of the screen, with or without a terminal.

What is on the screen is read here and drawn elsewhere: no panel, plot or dialog belongs here.
"""
