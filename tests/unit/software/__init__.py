"""What runs disciplines in software, without a queue of the kernel's."""
