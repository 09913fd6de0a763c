"""Queue disciplines in software, one file each, written to be read beside its source. No I/O."""
