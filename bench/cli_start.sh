#!/usr/bin/env bash
# cli_start.sh [RUNS=200]: how long `expanse` takes before it does anything. Prints
# name,metric,value,unit. Needs hyperfine and build/release. Budget: 20 ms at the median.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-200}
BIN=${EXPANSE_BIN:-$PWD/build/release/bin}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
echo "name,metric,value,unit"
for command in version "executions --help" "completion bash"; do
  hyperfine -N --style none --warmup 20 --runs "$runs" --export-json "$out" "$BIN/expanse $command" >/dev/null
  jq -r --arg name "expanse $command" \
    '.results[0] | [["median", .median], ["min", .min], ["mean", .mean], ["max", .max], ["user", .user], ["system", .system]][]
     | [$name, .[0], (.[1] * 100000 | round / 100), "ms"] | @csv' "$out" | tr -d '"'
done
# A command that talks loads the network library's state too.
home=$(mktemp -d)
HOME=$home hyperfine -N -i --style none --warmup 5 --runs $((runs / 2)) --export-json "$out" \
  "$BIN/expanse login --api-key exp_user_x --control-plane http://127.0.0.1:1" >/dev/null
rm -rf "$home"
jq -r '.results[0] | ["expanse login (refused)", "median", (.median * 100000 | round / 100), "ms"] | @csv' "$out" | tr -d '"'
echo "machine,cores,$(nproc),count"
echo "machine,load_1m,$(cut -d' ' -f1 /proc/loadavg),count"
