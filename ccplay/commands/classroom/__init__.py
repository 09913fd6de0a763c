"""Commands for a classroom, one file a subcommand."""
