"""Runs a program in a terminal of 110 columns, and prints what the terminal shows at the end, as plain text.

terminal.py <text> <program> <argument>...

When <text> is not empty, the program gets Ctrl-C once it has printed it. Exits with the program's exit code.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

COLUMNS, ROWS, SECONDS = 110, 400, 120
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]")


def screen(text):
    """The lines that are left after every movement of the cursor. The screen is higher than any output, so nothing scrolls."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(text):
        control = CONTROL.match(text, at)
        if control:
            count, kind = (control.group(1) or "").split(";")[0], control.group(2)
            number = int(count) if count.isdigit() else 0
            if kind == "A":
                row = max(0, row - max(1, number))
            elif kind == "B":
                row += max(1, number)
            elif kind == "G":
                column = max(0, number - 1)
            elif kind == "K" and number == 2:
                lines[row] = ""
            elif kind == "K" and number == 0:
                lines[row] = lines[row][:column]
            elif kind == "J" and number == 0:
                lines[row] = lines[row][:column]
                del lines[row + 1 :]
            at = control.end()
        elif text[at] == "\n":
            row, column, at = row + 1, 0, at + 1
        elif text[at] == "\r":
            column, at = 0, at + 1
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + text[at] + line[column + 1 :]
            column, at = column + 1, at + 1
        while row >= len(lines):
            lines.append("")
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def main():
    text, command = sys.argv[1].encode(), sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written, asked, until = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            written += chunk
        if text and text in written and not asked:
            asked = True
            os.write(terminal, b"\x03")
    else:
        os.kill(child, signal.SIGTERM)
    sys.stdout.write(screen(written.decode(errors="replace")))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
