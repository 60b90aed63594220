#!/usr/bin/env bash
# Starts a throw-away SLURM cluster on this machine: munged, mariadbd, slurmdbd, slurmctld and a slurmd for each node,
# as root, without systemd or cgroups, on loopback, with all its files in one directory. Installs Debian's packages
# where they are missing.
#
#   SLURM_LAB=/tmp/lab tests/slurm/up.sh && . /tmp/lab/env.sh       SLURM_LAB=/tmp/lab tests/slurm/down.sh
#
# SLURM_LAB        the directory; keep it short, the path of a socket has at most 108 bytes
# SLURM_LAB_PORT   of the controller; the next hundred are taken as well
# SLURM_LAB_NODES, SLURM_LAB_CPUS, SLURM_LAB_GPUS, SLURM_LAB_MEMORY (MB), the last three of each node
# SLURM_LAB_ARRAY  MaxArraySize
set -euo pipefail
LAB=${SLURM_LAB:?a directory}
PORT=${SLURM_LAB_PORT:-16817}
NODES=${SLURM_LAB_NODES:-2} CPUS=${SLURM_LAB_CPUS:-4} GPUS=${SLURM_LAB_GPUS:-2} MEMORY=${SLURM_LAB_MEMORY:-8000}
HERE=$(cd "$(dirname "$0")" && pwd)
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export SLURM_CONF=$LAB/etc/slurm.conf

fail() { echo "slurm up: $*" >&2; tail -n 15 "$LAB"/log/*.log >&2 2>/dev/null || true; exit 1; }

wait_for() { # seconds, command...
  local end=$(( $(date +%s) + $1 )); shift
  until "$@" >/dev/null 2>&1; do [ "$(date +%s)" -lt "$end" ] || return 1; sleep 0.05; done
}

install_packages() {
  local missing= package ok=1
  for package in munge slurmctld slurmd slurm-client slurmdbd mariadb-server-core; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then   # keeps the packages from starting daemons of their own
    printf '#!/bin/sh\nexit 101\n' > $policy; chmod 755 $policy; made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  install() { apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io $missing; }
  { install || { apt-get update -q && install; }; } > "$LAB/log/apt.log" 2>&1 || ok=0
  [ -z "$made" ] || rm -f $policy
  [ $ok = 1 ] || fail "apt-get could not install$missing"
}

write_config() {
  local bind=DisableIPv6 k g
  case "$(getent ahostsv4 "$(hostname)" | awk 'NR==1{print $1}')" in
    127.*) bind=NoCtldInAddrAny,NoInAddrAny ;;   # binds to what the host's name stands for
  esac
  cat > "$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$LAB/run/munge.socket,cred_expire=5
CommunicationParameters=$bind
StateSaveLocation=$LAB/state
SlurmctldPidFile=$LAB/run/slurmctld.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdSpoolDir=$LAB/spool-%n
SlurmdPidFile=$LAB/run/slurmd-%n.pid
SlurmdLogFile=$LAB/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1500
MaxArraySize=${SLURM_LAB_ARRAY:-1001}
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=5
MinJobAge=3600
FirstJobId=$(( $(date +%s) % 60000000 + 1 ))
MpiDefault=none
MailProg=/bin/true
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT + 1))
AccountingStoragePass=$LAB/run/munge.socket
AccountingStorageTRES=gres/gpu
CONF
  for k in $(seq "$NODES"); do   # the first may crash in a test; the others carry on
    echo "NodeName=node$k Feature=$([ "$k" = 1 ] && echo frail || echo steady) NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((PORT + 10 + k)) CPUs=$CPUS Boards=1" \
      "SocketsPerBoard=1 CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=$MEMORY Gres=gpu:$GPUS State=UNKNOWN"
  done >> "$SLURM_CONF"
  echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >> "$SLURM_CONF"
  echo "PartitionName=parked Nodes=ALL MaxTime=INFINITE State=DOWN" >> "$SLURM_CONF"   # takes jobs and starts none
  for g in $(seq 0 $((GPUS - 1))); do ln -sfn /dev/null "$LAB/dev/gpu$g"; done
  printf 'AutoDetect=off\nNodeName=node[1-%d] Name=gpu File=%s/dev/gpu[0-%d]\n' \
    "$NODES" "$LAB" $((GPUS - 1)) > "$LAB/etc/gres.conf"
  echo 'CgroupPlugin=cgroup/v1' > "$LAB/etc/cgroup.conf"   # not used; keeps slurmd from asking for another one
  cat > "$LAB/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$LAB/run/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORT + 1))
CommunicationParameters=$bind
SlurmUser=root
PidFile=$LAB/run/slurmdbd.pid
LogFile=$LAB/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
CONF
  chmod 600 "$LAB/etc/slurmdbd.conf"
}

start_munge() {
  head -c 1024 /dev/urandom > "$LAB/etc/munge.key"; chmod 400 "$LAB/etc/munge.key"
  munged --key-file="$LAB/etc/munge.key" --socket="$LAB/run/munge.socket" --pid-file="$LAB/run/munged.pid" \
    --log-file="$LAB/log/munged.log" --seed-file="$LAB/run/munged.seed" --origin=127.0.0.1 || fail munged
  wait_for 10 munge -n -S "$LAB/run/munge.socket" || fail "munged does not answer"
}

start_accounts() {
  local options="--no-defaults --user=root --datadir=$LAB/db --lc-messages-dir=/usr/share/mysql --skip-grant-tables"
  options="$options --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0"
  options="$options --innodb-lock-wait-timeout=900"
  { printf 'create database if not exists mysql;\nuse mysql;\n'
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_system_tables_data.sql
  } | mariadbd $options --bootstrap > "$LAB/log/mariadbd.log" 2>&1 || fail "mariadb --bootstrap"
  setsid mariadbd $options --skip-networking --socket="$LAB/run/mysqld.sock" --pid-file="$LAB/run/mariadbd.pid" \
    >> "$LAB/log/mariadbd.log" 2>&1 < /dev/null &
  wait_for 30 grep -q 'ready for connections' "$LAB/log/mariadbd.log" || fail mariadbd
  MYSQL_UNIX_PORT=$LAB/run/mysqld.sock slurmdbd || fail slurmdbd
  wait_for 30 grep -q 'slurmdbd version .* started' "$LAB/log/slurmdbd.log" || fail slurmdbd
}

start_slurm() {
  local k
  slurmctld || fail slurmctld
  wait_for 30 sh -c 'scontrol ping | grep -q "is UP"' || fail "slurmctld does not answer"
  for k in $(seq "$NODES"); do mkdir -p "$LAB/spool-node$k"; slurmd -N "node$k" || fail "slurmd of node$k"; done
  wait_for 30 sh -c "[ \$(sinfo -h -N -p main -t idle -o %N | wc -l) = $NODES ]" || fail "the nodes do not become idle"
}

[ "$(id -u)" = 0 ] || fail "only root can start a cluster"
SLURM_LAB=$LAB "$HERE/down.sh" >/dev/null 2>&1 || true   # what a run before this one may have left
rm -rf "$LAB"
mkdir -p "$LAB"/{etc,run,log,state,db/mysql,dev}
chmod 755 "$LAB" "$LAB"/{etc,run,log}   # munged does not trust directories that others can write to
install_packages
write_config
start_munge
start_accounts
start_slurm
echo "export SLURM_CONF=$SLURM_CONF" > "$LAB/env.sh"
