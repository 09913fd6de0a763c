"""The subcommands of ``ccplay``, one file each: what its words mean and how it is run."""
