"""A shared session in browsers: a process that watches it like any spectator, and serves a page.

Nothing here draws: plots, network and table are sent to the page as data. Nothing that a browser
sends leaves this room.
"""
