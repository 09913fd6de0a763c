"""The subcommands of who watches a shared session: on a terminal, and in browsers."""
