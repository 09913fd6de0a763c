"""Shares a session's stream with spectators, who join read-only over a private Unix socket.

``Sharing`` is a sink that writes events to a server process (``relay``) and never waits for it. It
keeps the past in an unnamed file, in lines of two seconds like a recording, and the newest seconds
in memory, in lines of 0.14 s. A spectator is a place in this backlog, so 200 cost hardly more than
one, and a slow one loses its place, not the others' time: it goes to the newest line and receives
a gap and all events but samples that it missed. What the presenter sees, and where they point, are
frames between the events (``frames``); they are in no recording. A spectator sends a hello of 16
bytes, and then votes of 16 bytes, which can reach nothing but the server's ballot. When another
network follows (``Over.another``), it is shared under the same name, and spectators and the
process for browsers join it there. A connection is one voter. One whose hello says
``Wants.BROWSERS``, and which the kernel knows as the presenter's or root's (``SO_PEERCRED``),
serves browsers (``web``): it has 1000 voting slots, one a browser, and reports how many browsers
there are, so that each is counted. Whoever else tries that is let go. Lines are compressed once
for all, in contexts of two seconds that begin where spectators join (``backlog``). ``python -m
tests.bench share`` measures delay, bytes and CPU.

Nothing here draws, and nothing that a spectator sends reaches the lab.
"""
