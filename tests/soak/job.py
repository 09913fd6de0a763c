"""``python -m tests.soak.job leader|shell ARGV``: starts a program on a terminal.

With ``leader`` the program itself leads the terminal's session, as under ``ssh -t``. With ``shell``
the program is the foreground job of this process, which takes the terminal back when the job is
stopped and resumes the job on SIGUSR1, as ``fg`` does.
"""

import fcntl
import os
import signal
import sys
import termios

TERMINAL = 0


def main() -> int:
    kind, *argv = sys.argv[1:]
    fcntl.ioctl(TERMINAL, termios.TIOCSCTTY, 0)
    if kind == "leader":
        os.execv(argv[0], argv)
    # SIGTTOU stops a background process that takes the terminal, unless it is ignored.
    for number in (signal.SIGTTOU, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(TERMINAL, os.getpid())
        for number in (signal.SIGTTOU, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        os.execv(argv[0], argv)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        own = termios.tcgetattr(TERMINAL)
        os.tcsetpgrp(TERMINAL, os.getpgrp())
        signal.sigwait([signal.SIGUSR1])
        termios.tcsetattr(TERMINAL, termios.TCSADRAIN, own)
        os.tcsetpgrp(TERMINAL, job)
        os.killpg(job, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main())
