"""Runs disciplines in software: packets wait in a netfilter queue in front of a link's rate.

Firewall rules (table mangle, ``client``) lead what leaves through an interface into a netfilter
queue. A process forked from the lab, ``software queue``, copies the headers, asks a class of
``lab/disciplines`` what to drop, mark and send, and releases packets at the link's rate on a
virtual clock (``serving``). A released packet has a firewall mark that leads it past HTB's rate,
into class ``1:2``; another mark sets CE. If the process dies, packets bypass its queue and wait
in the kernel's leaf at the link's rate. The lab reads counters from shared memory (``shared``)
in each sweep. The row of a queue adds up the packets in software and in the kernel, so a swap
counts every packet once.

Swaps: from kernel to software, the process starts to send when the kernel's leaf has drained;
from software to kernel, the new, empty leaf receives all waiting packets at once and in order.
Between two disciplines in software, packets keep their times of arrival. Where a discipline
raises an exception, or sends nothing for 0.5 s while packets wait, a FIFO takes over;
``serving`` holds all waiting packets, so a discipline can lose none.

A user's own discipline is a file that only a command line names. The lab reads it
(``lab/custom/declaring``) and sends its text with the order. The process ``queue trial`` first
runs it in a child; then the process ``software queue`` does, with limits of time, memory and
processes (``lab/custom/limits``). If it ends that process, the lab learns from ``shared`` whose
call ran. Its parameters are read from the text without running it, so scenarios, menus and the
lab know them beforehand.
"""
