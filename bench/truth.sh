#!/usr/bin/env bash
# truth.sh [JOBS=63] [BISECTIONS=10]: real jobs of known behaviour on a real SLURM with our hooks and a
# sampler on each node; prints what Expanse makes of them beside what the kernel said, and how many fields
# hold. Needs root and cgroup v1. EXPANSE_BIN names the binaries (default build/dev/bin).
# The samplers run as user slurm with CAP_NET_ADMIN and CAP_SYS_PTRACE; with TRUTH_CAPS= (empty) they have
# neither, to see the floors.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-63} bisections=${2:-10}
BIN=${EXPANSE_BIN:-$PWD/build/dev/bin}
DIR=${TRUTH_DIR:-/tmp/expanse-truth}
export LAB_DIR=$DIR/lab LAB_NODES=2 LAB_PREFIX=${LAB_PREFIX:-tr} LAB_PORT=${LAB_PORT:-17500}
export LAB_CPUS=${LAB_CPUS:-8} LAB_MEM=${LAB_MEM:-6000} LAB_CONF_EXTRA=$DIR/extra.conf
export LAB=$PWD/lab/slurm-lab SLURM_CONF=$LAB_DIR/etc/slurm.conf
caps=${TRUTH_CAPS-+net_admin,+sys_ptrace}
samplers=()

stop() {
  local pid
  for pid in "${samplers[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait "${samplers[@]}" 2>/dev/null || true
  "$LAB" stop >/dev/null
}
trap stop EXIT
"$LAB" stop >/dev/null 2>&1 || true
rm -rf "${DIR:?}"
mkdir -p "$DIR"/{hooks,spool,shared/spool,log}
chmod 755 "$DIR"; chown slurm "$DIR/spool" "$DIR/shared" "$DIR/shared/spool"
for kind in prolog epilog task_prolog task_epilog; do install -m 755 "$BIN/expanse-hook" "$DIR/hooks/$kind"; done
echo "spool = $DIR/spool" >"$DIR/hooks/hook.conf"
printf '%s\n' "Prolog=$DIR/hooks/prolog" "Epilog=$DIR/hooks/epilog" "TaskProlog=$DIR/hooks/task_prolog" \
  "TaskEpilog=$DIR/hooks/task_epilog" >"$LAB_CONF_EXTRA"
"$LAB" start >"$DIR/log/lab.log" 2>&1

for ((i = 1; i <= LAB_NODES; i++)); do
  setpriv --reuid slurm --regid "$(id -g slurm)" --init-groups ${caps:+--inh-caps "$caps" --ambient-caps "$caps"} -- \
    env -i PATH=/usr/bin:/bin HOME=/ "$BIN/expanse-daemon" run --role sampler --shared-prefix "$DIR/shared" \
    --hook-spool "$DIR/spool" --node "$LAB_PREFIX$i" >"$DIR/log/sampler-$LAB_PREFIX$i.log" 2>&1 </dev/null &
  samplers+=($!)
done
sleep 2
for pid in "${samplers[@]}"; do kill -0 "$pid" || { cat "$DIR"/log/sampler-*.log >&2; exit 1; }; done

install -m 755 "$BIN/bench_truth_work" "$DIR/truth_work"
install -d -o alice "$DIR/out"
TRUTH_FACTS=$BIN/bench_truth_facts TRUTH_DIR=$DIR python3 bench/truth.py "$jobs" "$bisections"
