#!/bin/sh
# Ends what a test run leaves, however the run ends: watchdog.sh <pid of the run's main process> <folder of the run>.
# The first line of standard input is a mark that every process of the run has in its environment. Standard input ends
# when the run ends. Then every marked process is killed and printed, and the folder is deleted. A second line says that
# the main process lives on: its own children are spared, because Vitest ends those itself. A main process that was
# killed says nothing, and none is spared.
main=$1 folder=$2 spared=none
read -r mark

marked() {
  if [ -e /proc/self/environ ]; then grep -lsaF -e "$mark" /proc/[0-9]*/environ | cut -d/ -f3
  else ps -axEwwo pid=,command= | while read -r pid rest; do case $rest in *"$mark"*) echo "$pid" ;; esac; done; fi
}

while read -r line; do spared=$main; done
# Repeated, because a process may start another one while it is looked for.
while pids=$(for pid in $(marked); do [ "$(ps -o ppid= -p "$pid" | tr -d ' ')" = "$spared" ] || echo "$pid"; done)
  [ -n "$pids" ]
do
  for pid in $pids; do ps -wwo args= -p "$pid" | cut -c1-200; kill -KILL "$pid" 2>/dev/null; done
  sleep 0.1
done
rm -rf "$folder"
