"""A full kernel in a virtual machine: one more way to start a lab.

It knows kernels and QEMU; it knows nothing of labs, scenarios or the screen.
"""
