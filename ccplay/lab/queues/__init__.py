"""Queue disciplines in the kernel: attached, changed, read back, counted."""
