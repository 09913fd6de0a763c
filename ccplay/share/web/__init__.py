"""A shared session in browsers: a process that watches it like any spectator, and serves a page.

The presenter only starts the process and reads the link and the number of browsers from its pipe
(``share/presenter``). ``facts`` turns the descriptions of ``plots/`` into lines, each a variable
of one subject; ``feed`` sends their values on a common grid of moments (20 Hz with few lines), as
differences of whole numbers, and facts when they change; it answers what was between two moments,
computed once for all who look at the same. Messages are server-sent events, so a browser sends
nothing but GET and, in a lesson, a POST of at most 64 bytes with question and choice. ``pages``
gives each page that receives the stream, under a random name of its own, a voting slot with ten
votes at once, then one a second; it votes only while it receives. A page that has left keeps its
slot until all are taken, so reloading gives no second vote, and there are never more votes than
slots. Whoever has the link and writes a program can still take several slots, like whoever opens
several terminals; the presenter then sees more votes than people. Markdown goes to the page as
lists of known elements, of which it makes nodes. A slow browser begins anew with the newest state.
``page/`` is plain ES modules that draw what they are sent: no name, unit or factor of a plot is
written there. ``python -m tests.bench classroom --seconds 300`` simulates a class of 200. Tests of
the page need Chromium and are skipped without one.

Nothing here draws. Of all that a browser sends, only a vote leaves this package, as a number that
the session's ballot counts.
"""
