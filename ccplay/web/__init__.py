"""A shared session in browsers: a process that watches it like any spectator, and serves a page.

Nothing here draws: plots, network, table and lesson go to the page as data. Of all that a browser
sends, only a vote leaves this package, as a number that the session's ballot counts.
"""
