"""A full kernel in a virtual machine, as one more way to start the lab."""
