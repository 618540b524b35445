#!/usr/bin/env bash
# slurm_throughput.sh [PAIRS=10] [JOBS=300]: jobs a minute of a real SLURM with Expanse's hooks against
# do-nothing hooks in the same places, interleaved. Prints name,metric,value,unit.
# Needs root and build/release. Both hooks are static programs.
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${1:-10} jobs=${2:-300}
BIN=${EXPANSE_BIN:-$PWD/build/release/bin}
export STACK_DIR=${STACK_DIR:-/tmp/expanse-throughput} LAB_PREFIX=tp LAB_PORT=17500 LAB_CPUS=16
export LAB_CONF_EXTRA=$STACK_DIR/extra.conf
mkdir -p "$STACK_DIR"
hooks=$STACK_DIR/hooks
mkdir -p "$hooks"
for hook in prolog:Prolog epilog:Epilog task_prolog:TaskProlog task_epilog:TaskEpilog; do
  echo "${hook#*:}=$hooks/${hook%:*}"
done >"$LAB_CONF_EXTRA"
. lab/stack.sh
printf 'int main(void) { return 0; }\n' | gcc -O2 -static -x c - -o "$STACK_DIR/nothing"

place() { # program: into all four places, by rename, so that a running hook is not disturbed
  local kind
  for kind in prolog epilog task_prolog task_epilog; do cp "$1" "$hooks/.$kind" && mv "$hooks/.$kind" "$hooks/$kind"; done
}
events() { find "$STACK_DIR/events" -type f 2>/dev/null; }
place "$STACK_DIR/nothing"
"$BIN/expanse-hook" --print-layout >/dev/null 2>&1 || true
printf 'spool=%s\n' "$STACK_DIR/events" >"$hooks/hook.conf"
for node in "${LAB_PREFIX}1" "${LAB_PREFIX}2"; do mkdir -p "$STACK_DIR/events/$node/events"; chmod 1733 "$STACK_DIR/events/$node/events"; done
chmod 755 "$STACK_DIR" "$hooks" "$STACK_DIR/events"

trap 'stack_stop; rm -rf "$STACK_DIR"' EXIT
stack_slurm
run() { # prints jobs a minute
  local t0 t1
  t0=$(date +%s%N)
  as alice bash -c "seq $jobs | xargs -P 2 -I{} sbatch --parsable --mem=10M --time=1 --output=/dev/null --wrap true" >/dev/null
  while [ -n "$(slurm squeue -h -o %i | head -n 1)" ]; do sleep 0.05; done
  t1=$(date +%s%N)
  awk -v n="$jobs" -v a="$t0" -v b="$t1" 'BEGIN { printf "%.1f", n / ((b - a) / 1e9) * 60 }'
}
run >/dev/null # warm
ratios=() ours_all=() nothing_all=()
for ((i = 1; i <= pairs; i++)); do
  place "$STACK_DIR/nothing"; nothing=$(run)
  place "$BIN/expanse-hook"; ours=$(run)
  written=$(events | wc -l)
  events | xargs -r rm -f
  ratios+=("$(awk -v a="$ours" -v b="$nothing" 'BEGIN { printf "%.4f", a / b }')")
  ours_all+=("$ours") nothing_all+=("$nothing")
  echo "slurm_throughput,pair_$i,$ours/$nothing,jobs_per_minute (events written: $written)" >&2
done
stat() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; printf "%s,%s,%s", v[1], m, v[NR] }'; }
echo "slurm_throughput,expanse_min_median_max,$(stat "${ours_all[@]}"),jobs_per_minute"
echo "slurm_throughput,nothing_min_median_max,$(stat "${nothing_all[@]}"),jobs_per_minute"
echo "slurm_throughput,ratio_min_median_max,$(stat "${ratios[@]}"),ratio"
