"""The lab: the privileged process that owns Mininet, queues and sockets in private namespaces.

It receives commands and emits events; it knows nothing about sessions, scenarios or the screen.
"""
