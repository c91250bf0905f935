#!/bin/sh
# Starts the time-skipping server: test-server.sh <port> <program>. The port is the server's only argument: with an
# option for time skipping, its clock would move by itself.
# `exec` keeps the pid, so that a signal to this script reaches the server. The loop in the background ends the server
# when the process that started it was killed.
parent=$PPID
( while kill -0 "$parent" 2>/dev/null && kill -0 "$$" 2>/dev/null; do sleep 2; done; kill "$$" 2>/dev/null ) </dev/null >/dev/null 2>&1 &
exec "$2" "$1"
