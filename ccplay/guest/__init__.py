"""A full kernel in a virtual machine: another way to start a lab.

This package knows kernels and QEMU, and nothing of labs, scenarios or the screen.
"""
