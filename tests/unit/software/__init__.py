"""Tests of the process that runs disciplines in software, without a queue of the kernel."""
