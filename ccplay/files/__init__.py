"""Files: read only where they are regular, written whole or not at all, cached only where trusted.

Nothing else in the package creates or changes a file.
"""
