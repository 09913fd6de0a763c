"""Queue disciplines in software, one per file, each to be read beside its RFC or paper. No I/O."""
