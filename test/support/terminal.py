"""Runs a program in a terminal of its own and closes the terminal when the program has printed a text.

terminal.py <text> <seconds> <program> <argument>...

Prints what the program wrote until then. The last line is JSON: whether the text came, and how the program ended:
an exit code, a negative signal number, or null when it still ran after the given seconds. Then it is killed.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

text, seconds, command = sys.argv[1].encode(), float(sys.argv[2]), sys.argv[3:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)

fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
written = b""
until = time.monotonic() + seconds
while text not in written and time.monotonic() < until:
    if not select.select([terminal], [], [], 0.1)[0]:
        continue
    try:
        chunk = os.read(terminal, 65536)
    except OSError:
        break
    if not chunk:
        break
    written += chunk
os.close(terminal)

status = None
until = time.monotonic() + seconds
while status is None and time.monotonic() < until:
    ended, raw = os.waitpid(child, os.WNOHANG)
    if ended:
        status = os.waitstatus_to_exitcode(raw)
    else:
        time.sleep(0.02)
if status is None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

sys.stdout.write(written.decode(errors="replace") + "\n")
print(json.dumps({"printed": text in written, "ended": status}))
