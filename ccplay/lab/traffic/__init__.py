"""Traffic: starts, switches, follows and stops it.

A session asks for traffic some 1.3 s and three base RTTs before its moment (``StartTogether``), so
that a flow whose first SYN is dropped by a full queue still starts at its moment; what starts with
the network is in ``Build.first``, what starts within its first second in ``Build.soon``, and both
are prepared before ``Ready``. Programs start side by side, and each is held at the system call
after which it sends (``program``: seccomp user notification): iperf3 where it reads from its server
that the test begins, with its connections open. What opens its connections at the moment sends as
soon as they are open. At the moment ``gate`` lets all of them go. A program needs a core for some
0.4 ms until it has filled its window, so the last of many would begin late: the lab therefore
writes the first segment of each open connection itself, through a duplicate of its socket, before
it lets any program go. Nothing overtakes a step that precedes it in the timeline, but a mark is no
such step. Where the kernel can't hold a program, it is started at the moment. What is started by
hand starts at once.
"""
