"""The subcommands of ``ccplay``, one file each, with their options.

Heavy imports are inside functions, so that ``--help`` is instant.
"""
