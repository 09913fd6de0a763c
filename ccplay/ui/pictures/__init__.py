"""Pictures and casts of the screen, with or without a terminal.

This package only reads the drawn screen; panels, plots and dialogs belong elsewhere.
"""
