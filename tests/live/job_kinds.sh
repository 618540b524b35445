#!/usr/bin/env bash
# job_kinds.sh MODE [REPETITIONS]: every job kind of lab/jobs through a real SLURM and Expanse.
#   normal     hooks, samplers and polling
#   killed     the controller daemon is killed with SIGKILL in the middle and started again
#   polling    no hook is wired and no sampler runs: squeue, scontrol and sacct alone
# EXPANSE_BIN names the binaries (default build/dev/bin). EXPANSE_KINDS limits the kinds.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=${1:?usage: job_kinds.sh normal|killed|polling [REPETITIONS]} repetitions=${2:-1}
BIN=${EXPANSE_BIN:-$PWD/build/dev/bin}
export STACK_DIR=${STACK_DIR:-/tmp/expanse-live-$mode} STACK_PORT=${STACK_PORT:-7731}
export LAB_PREFIX=${LAB_PREFIX:-lv} LAB_PORT=${LAB_PORT:-17400} LAB_CPUS=8
. lab/stack.sh
kinds=${EXPANSE_KINDS:-timeout requeued success train oom-batch oom-step exit3 missing-module segfault cancelled array multistep}

trap 'stack_stop' EXIT
stack_stop; rm -rf "${STACK_DIR:?}"
stack_slurm
stack_planes --log-received-control "$STACK_DIR/control.received"
stack_login
if [ "$mode" = polling ]; then
  cp "$SLURM_CONF_FILE" "$STACK_DIR/slurm.conf.bare"
fi
EXPANSE_INSTALL_TOKEN=$(stack_register "live-$mode") stack_install >"$STACK_DIR/log/install.log"
if [ "$mode" = polling ]; then
  cp "$STACK_DIR/slurm.conf.bare" "$SLURM_CONF_FILE"
  slurm scontrol reconfigure
fi
stack_controller
[ "$mode" = polling ] || stack_samplers
stack_await_active

for user in alice bob; do cp lab/jobs/* "$LAB_DIR/work/$user/"; chown "$user" "$LAB_DIR/work/$user"/*; done
declare -A ID
failed=0
for ((round = 1; round <= repetitions; round++)); do
  ids='{}'
  for kind in $kinds; do
    user=alice; [[ $kind == oom-* || $kind == array ]] && user=bob
    id=$(as "$user" sbatch --parsable "$kind.slurm"); id=${id%%;*}
    ID[$kind]=$id
    ids=$(jq -c --arg k "$kind:$round" --arg v "$id" '. + {($k): $v}' <<<"$ids")
  done
  if [[ $kinds == *cancelled* ]]; then
    for _ in $(seq 300); do [ "$(slurm squeue -h -j "${ID[cancelled]}" -o %T 2>/dev/null)" = RUNNING ] && break; sleep 0.1; done
    sleep 1; as alice scancel "${ID[cancelled]}"
  fi
  if [ "$mode" = killed ]; then
    sleep 4; end controller KILL; sleep 6; stack_controller
  fi
  for _ in $(seq 900); do [ -z "$(slurm squeue -h -o %A)" ] && break; sleep 0.2; done
  # An ended job may take a poll and slurmdbd's batch to arrive.
  ok=
  for _ in $(seq 40); do
    expanse executions --limit 1000 --json >"$STACK_DIR/executions.json"
    echo "$ids" >"$STACK_DIR/ids.json"
    if python3 tests/live/check_executions.py "$STACK_DIR/ids.json" "$STACK_DIR/executions.json" >"$STACK_DIR/differences.txt" 2>&1; then ok=1; break; fi
    sleep 1
  done
  if [ -n "$ok" ]; then echo "round $round ($mode): complete"; else
    failed=$((failed + 1)); echo "round $round ($mode):"; cat "$STACK_DIR/differences.txt"
  fi
done
if [ -s "$STACK_DIR/control.received" ]; then
  python3 tests/live/check_boundary.py "$STACK_DIR/control.received" || failed=$((failed + 1))
fi
echo "$((repetitions - failed)) passed, $failed failed"
[ "$failed" = 0 ]
