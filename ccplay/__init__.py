"""ccplay: see TCP congestion control work, live, on real Linux stacks."""

__version__ = "0.2.0"
