"""Commands for a classroom, one file per subcommand."""
