"""Congestion controls as BPF programs: built, loaded, and removed with the process.

A congestion control belongs to the whole host. So the lab registers each through a BPF link
(``BPF_F_LINK``, Linux 6.4), which the kernel removes with the lab's process, SIGKILL or not;
sockets that still use it die with the PID namespace. Labs run in parallel, so each registers
under a kernel name of its own, such as ``cc3f2a_vegas``; ``loaded`` maps it to ``vegas.bpf``,
the name used everywhere else. A plain name is the kernel's algorithm where it has one, otherwise
ours, and events report which it was. What a scenario names (``Build.prepared``) is compiled and
loaded before ``Ready``, anything else when a flow needs it. Objects are cached by the digest of
source, header, clang and the kernel's types. A user's own file is named only on the command
line, never by a scenario. ``tests/lab/test_equations.py`` compiles each source for the host and
compares it with its equation at any window; ``test_algorithms.py`` checks its behaviour on a
real path, ``test_modules.py`` compares it with the kernel's.

Some kernels run no BPF program in an interrupt while process 1 is running; the stack then uses
whatever is in the result register. ``analysis/trust`` detects the impossible windows that
follow.

Nothing here knows links, traffic or topologies; the lab does.
"""
