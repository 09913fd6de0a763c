"""The subcommands of ``ccplay``, one file each: their options, and what they run.

Heavy imports stand inside the functions, so that ``--help`` is instant.
"""
