#!/usr/bin/env bash
# job_kinds.sh MODE [BATCHES=1] [AT_ONCE=1]: every job kind of lab/jobs through a real SLURM and Expanse,
# BATCHES times, AT_ONCE repetitions submitted together.
#   normal     hooks, samplers and polling
#   killed     the controller daemon is killed with SIGKILL in the middle and started again
#   polling    no hook is wired and no sampler runs: squeue, scontrol and sacct alone
# EXPANSE_BIN names the binaries (default build/dev/bin). EXPANSE_KINDS limits the kinds.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=${1:?usage: job_kinds.sh normal|killed|polling [BATCHES] [AT_ONCE]} batches=${2:-1} at_once=${3:-1}
BIN=${EXPANSE_BIN:-$PWD/build/dev/bin}
export STACK_DIR=${STACK_DIR:-/tmp/expanse-live-$mode} STACK_PORT=${STACK_PORT:-7731}
export LAB_PREFIX=${LAB_PREFIX:-lv} LAB_PORT=${LAB_PORT:-17400} LAB_CPUS=${LAB_CPUS:-16} LAB_MEM=${LAB_MEM:-16000}
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
failed=0
for ((batch = 1; batch <= batches; batch++)); do
  ids='{}' cancel=()
  for ((round = 1; round <= at_once; round++)); do
    for kind in $kinds; do
      user=alice; [[ $kind == oom-* || $kind == array ]] && user=bob
      id=$(as "$user" sbatch --parsable "$kind.slurm"); id=${id%%;*}
      [ "$kind" != cancelled ] || cancel+=("$id")
      ids=$(jq -c --arg k "$kind:$batch.$round" --arg v "$id" '. + {($k): $v}' <<<"$ids")
    done
  done
  for id in "${cancel[@]}"; do
    for _ in $(seq 900); do [ "$(slurm squeue -h -j "$id" -o %T 2>/dev/null)" = RUNNING ] && break; sleep 0.1; done
    sleep 1; as alice scancel "$id"
  done
  if [ "$mode" = killed ]; then
    end controller KILL; sleep 6; stack_controller
  fi
  for _ in $(seq 2400); do [ -z "$(slurm squeue -h -o %A)" ] && break; sleep 0.2; done
  # An ended job may take a poll and slurmdbd's batch to arrive.
  ok=
  for _ in $(seq 60); do
    expanse executions --limit 2000 --json >"$STACK_DIR/executions.json"
    echo "$ids" >"$STACK_DIR/ids.json"
    if python3 tests/live/check_executions.py "$mode" "$STACK_DIR/ids.json" "$STACK_DIR/executions.json" >"$STACK_DIR/differences.txt" 2>&1; then ok=1; break; fi
    sleep 1
  done
  if [ -n "$ok" ]; then echo "batch $batch ($mode, $at_once at once): complete"; else
    failed=$((failed + 1)); echo "batch $batch ($mode, $at_once at once):"; cat "$STACK_DIR/differences.txt"
  fi
done

# The rest of the main job, so that what the control plane receives is that of a whole day's use.
of_kind() { jq -r --arg k "$1:" 'to_entries | map(select(.key | startswith($k)))[0].value // empty' <<<"$ids"; }
note() { failed=$((failed + 1)); echo "$*"; }
if [ -n "$(of_kind train)" ]; then
  execution=$(execution_of "$(of_kind train)" | jq -r .execution_id)
  if [ "$mode" != polling ]; then
    rows=$(expanse metrics "$execution" memory --csv | wc -l)
    [ "$rows" -gt 2 ] || note "metrics of train: $rows lines of CSV, so no series of memory"
  fi
  expanse analyse "$LAB_DIR/work/alice/train.slurm" --json </dev/null >"$STACK_DIR/analyse.json" || note "analyse failed"
fi
if [ -n "$(of_kind oom-batch)" ]; then
  expanse diagnose "$(of_kind oom-batch)" --source-type slurm --json >"$STACK_DIR/diagnose.json" || note "diagnose failed"
  class=$(jq -r .result.display.failure_class "$STACK_DIR/diagnose.json")
  [ "$class" = host_out_of_memory ] || note "diagnose of oom-batch: $class"
fi
python3 tests/live/check_boundary.py "$STACK_DIR/control.received" || note "the boundary check failed"
echo "$batches batches ($mode): $failed failed checks"
[ "$failed" = 0 ]
