"""The subcommands of ``ccplay``, one file each, with their options.

Heavy imports stand inside functions, so that ``--help`` is instant.
"""
