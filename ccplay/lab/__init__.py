"""The privileged side: Mininet, qdiscs, sockets, inside private namespaces."""
