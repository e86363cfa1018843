"""Types into `tg chat` at a terminal: PROGRAM URL. Prints what the terminal showed, and the exit code on the last line."""

import os
import pty
import select
import sys
import time

BOUND = 60


def main(program, url):
    pid, terminal = pty.fork()
    if pid == 0:
        environment = dict(os.environ, TRUSTGRAPH_URL=url, TERM="xterm", XDG_CONFIG_HOME="/nowhere")
        os.execve(program, [program, "chat"], environment)
    shown = b""
    end = time.monotonic() + BOUND

    def until(text, since=0):
        nonlocal shown
        while text not in shown[since:]:
            if time.monotonic() > end:
                print(shown.decode(errors="replace"))
                sys.exit(f"{text!r} was not shown")
            ready, _, _ = select.select([terminal], [], [], 0.2)
            if ready:
                try:
                    shown += os.read(terminal, 4096)
                except OSError:
                    break
        return shown.index(text, since) + len(text) if text in shown[since:] else len(shown)

    def send(text):
        os.write(terminal, text)

    at = until(b"> ")
    # Ctrl-C in the middle of an answer stops that one.
    send(b"Tell me slowly\r")
    at = until(b"first-piece", at)
    send(b"\x03")
    at = until(b"stopped", at)
    at = until(b"> ", at)
    # Ctrl-C at the prompt throws the line away.
    send(b"nonsense that is not asked")
    at = until(b"not asked", at)
    send(b"\x03")
    at = until(b"> ", at)
    send(b"Who built the lamp?\r")
    at = until(b"Ada Brisk built it.", at)
    at = until(b"> ", at)
    # The arrow key finds it again.
    send(b"\x1b[A\r")
    at = until(b"Ada Brisk built it.", at)
    until(b"> ", at)
    send(b"\x04")
    status = None
    while status is None and time.monotonic() < end:
        select.select([terminal], [], [], 0.1)
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            pass
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
    print(shown.decode(errors="replace"))
    print(os.waitstatus_to_exitcode(status) if status is not None else "did not end")


main(*sys.argv[1:])
