"""Links that move: what a trace or a model says of a link over time.

``content`` is what both become: opportunities to send, or steps of the rate, with steps of delay
and loss. ``formats`` reads files into it and writes them, ``models`` computes it, ``schedule`` is
the clock that the lab's queue in software releases packets by, and ``delivery`` keeps contents by
their digest until a lab asks for them. The setting that names a trace is ``ccplay/model/moving``.

Nothing here knows of links, queues or sockets: ``ccplay/lab`` does.
"""
