#!/bin/sh
# Ends what a test run leaves, however the run ends: watchdog.sh <pid of the run's main process> <folder of the run>.
# The first line of standard input is a mark that every process of the run has in its environment. Standard input ends
# when the main process closes it or is killed. Then every marked process is killed and printed, and the folder is
# deleted. While the main process lives, its own children are spared: Vitest ends those itself.
main=$1 folder=$2
read -r mark

marked() {
  if [ -e /proc/self/environ ]; then grep -lsaF -e "$mark" /proc/[0-9]*/environ | cut -d/ -f3
  else ps -axEwwo pid=,command= | while read -r pid rest; do case $rest in *"$mark"*) echo "$pid" ;; esac; done; fi
}

cat >/dev/null
# Repeated, because a process may start another one while it is looked for, and because a main process that is killed
# has its children for a moment longer.
quiet=0
while [ "$quiet" -lt 3 ]; do
  quiet=$((quiet + 1))
  for pid in $(marked); do
    [ "$(ps -o ppid= -p "$pid" | tr -d ' ')" = "$main" ] && continue
    quiet=0
    ps -wwo args= -p "$pid" | cut -c1-200
    kill -KILL "$pid" 2>/dev/null
  done
  sleep 0.3
done
rm -rf "$folder"
