"""Files: reads regular files only, writes whole files or none, caches only trusted ones.

Nothing else in the package creates or changes a file.
"""
