"""Flows over several paths: Multipath TCP (RFC 8684), managed by the lab or by the kernel.

An MPTCP flow is a ``Flow`` whose programs are ``transfer``. The sender's host leaves path
management to the lab (``net.mptcp.path_manager``, ``pm_type`` before Linux 6.15), which requests
subflows by generic netlink, from addresses and source ports that ``path_manager`` has chosen by
route lookups. So ports and names are known beforehand; under the kernel's own path manager,
subflows are found as they open. Subflows are tracked and traced like any connection, and
``probe/connection`` combines theirs into one ``tcp_info`` for the flow, with the bytes that
inet_diag reports of the MPTCP connection. In the state a subflow is a ``Flow`` of kind
``subflow``, in ``flows`` but not in ``streams``, so no sum counts it twice.
"""
