#!/usr/bin/env bash
# Stops what up.sh started: jobs first, then each daemon, by the pid in its own file and only if it still is that daemon.
set -uo pipefail
LAB=${SLURM_LAB:?a directory}
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export SLURM_CONF=$LAB/etc/slurm.conf
[ -d "$LAB/run" ] || exit 0
result=0

runs() { # pid, name; a daemon that nobody has buried yet does not
  [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

stop() { # pid file, name, seconds
  local pid; pid=$(cat "$1" 2>/dev/null) || return 0
  if runs "$pid" "$2"; then
    kill -TERM "$pid" 2>/dev/null
    for _ in $(seq $(( $3 * 20 ))); do runs "$pid" "$2" || break; sleep 0.05; done
    if runs "$pid" "$2"; then kill -KILL "$pid" 2>/dev/null; echo "slurm down: $2 $pid had to be killed" >&2; result=1; fi
  fi
  rm -f "$1"
}

with_children() { local child; for child in $(ps -o pid= --ppid "$1"); do with_children "$child"; done; echo "$1"; }

if [ -s "$LAB/run/slurmctld.pid" ] && timeout 3 scontrol ping 2>/dev/null | grep -q 'is UP'; then
  timeout 10 scancel --user=root --signal=KILL --full 2>/dev/null
  timeout 10 scancel --user=root 2>/dev/null
  for _ in $(seq 100); do [ -z "$(timeout 3 squeue -h -t R,CG,CF,S 2>/dev/null)" ] && break; sleep 0.1; done
fi
for file in "$LAB"/run/slurmd-*.pid; do [ -e "$file" ] && stop "$file" slurmd 15; done
stop "$LAB/run/slurmctld.pid" slurmctld 15
stop "$LAB/run/slurmdbd.pid" slurmdbd 15
stop "$LAB/run/mariadbd.pid" mariadbd 20
stop "$LAB/run/munged.pid" munged 5

left=
for pid in $(pgrep -x slurmstepd); do   # outlives a slurmd that crashed; only this cluster's own
  { tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "SLURM_CONF=$SLURM_CONF"; } 2>/dev/null \
    && left="$left $(with_children "$pid")"
done
[ -z "$left" ] || kill -KILL $left 2>/dev/null
exit $result
