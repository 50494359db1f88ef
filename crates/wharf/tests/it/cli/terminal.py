"""Runs a program on a pseudo-terminal. Copies its output to stdout and types the input from stdin."""

import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])


def shown():
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


wanted, typed = os.environ.get("UNTIL", "").encode(), os.environ.get("TYPED", "").encode()
seen = b""
while data := shown():
    seen += data
    if wanted and wanted in seen:
        os.write(terminal, typed)
        wanted = b""
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
