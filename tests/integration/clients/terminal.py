"""Runs a program at a terminal of 80 columns: STEPS PROGRAM ARGUMENTS. STEPS is JSON, a list of [what is waited for, what
is typed then]. Prints, as JSON, all that the terminal showed and the exit code; null where it did not end."""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

BOUND = 90
SIZE = struct.pack("HHHH", 24, 80, 0, 0)


def main(steps, program, *arguments):
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, SIZE)
        environment = dict(os.environ, TERM="xterm", XDG_CONFIG_HOME="/nowhere")
        os.execve(program, [program, *arguments], environment)
    steps = json.loads(steps)
    shown, looked, open_ = b"", 0, True
    end = time.monotonic() + BOUND
    while open_ and time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                open_ = False
        while steps and steps[0][0].encode() in shown[looked:]:
            awaited, typed = steps.pop(0)
            looked = shown.index(awaited.encode(), looked) + len(awaited)
            os.write(terminal, typed.encode())
    code = None
    if not open_:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    else:
        os.kill(pid, 9)
    print(json.dumps({"shown": shown.decode(errors="replace"), "code": code, "left": steps}))


main(*sys.argv[1:])
