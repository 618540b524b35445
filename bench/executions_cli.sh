#!/usr/bin/env bash
# executions_cli.sh [ROWS=1000000] [RUNS=50]: `expanse executions` as a user types it, against `expanse up`
# with ROWS stored executions. Fills a new data directory once (DIR, default a temporary one below /var/tmp; one
# that is filled is used again), starts the planes on free ports, signs in, times each command with hyperfine.
# Prints name,metric,value,unit. Needs hyperfine, jq and build/release (expanse, expanse-up,
# bench_executions_list; EXPANSE_BIN). Budget: 100 ms.
set -euo pipefail
cd "$(dirname "$0")/.."
rows=${1:-1000000} runs=${2:-50}
BIN=${EXPANSE_BIN:-$PWD/build/release/bin}
keep=${DIR:-} DIR=${DIR:-$(mktemp -d /var/tmp/expanse-executions-XXXXXX)}
mkdir -p "$DIR/home"
planes=""
stop() {
  [ -z "$planes" ] || { kill "$planes" 2>/dev/null && wait "$planes"; } || true
  planes=""
}
trap 'stop; [ -n "$keep" ] || rm -rf "$DIR"' EXIT
start() {
  rm -f "$DIR/ready"
  "$BIN/expanse" up --data-dir "$DIR/data" --base-port 0 --owner-email user3@example.org --ready-file "$DIR/ready" >"$DIR/log" 2>&1 &
  planes=$!
  for _ in $(seq 600); do [ -e "$DIR/ready" ] && return; sleep 0.05; done
  tail -n 5 "$DIR/log" >&2
  exit 1
}
expanse() { HOME=$DIR/home EXPANSE_API_KEY=$(cat "$DIR/data/owner.key") "$BIN/expanse" "$@"; }

start
if [ ! -e "$DIR/filled-$rows" ]; then
  key=$(cat "$DIR/data/owner.key")
  organisation=$(curl -fsS -H 'content-type: application/json' --data-binary @- \
    "$(cat "$DIR/ready")/expanse.control.v1.AuthService/MintSession" <<<"{\"api_key\":\"$key\"}" | jq -r .identity.organisation_id)
  stop
  "$BIN/bench_executions_list" "$rows" "$DIR/data/data/data.db" "$organisation"
  touch "$DIR/filled-$rows"
  start
fi
expanse login --control-plane "$(cat "$DIR/ready")" >/dev/null

echo "name,metric,value,unit"
while read -r flags; do
  HOME=$DIR/home hyperfine -N --style none --warmup 2 --runs "$runs" --export-json "$DIR/out" \
    "$BIN/expanse executions $flags" >/dev/null
  jq -r --arg name "executions${flags:+ }$flags" \
    '.results[0] | (.times | sort) as $t | [["min", $t[0]], ["median", .median], ["p95", $t[(($t | length) * 0.95 | floor)]], ["max", $t[-1]]][]
     | [$name, .[0], (.[1] * 100000 | round / 100), "ms"] | @csv' "$DIR/out" | tr -d '"'
done <<EOF

--status failed
--status running
--status queued
--outcome out_of_memory
--user user0
--user user199
--user user0 --status failed --outcome timeout
--mine
--limit 500
--json
EOF
echo "machine,cores,$(nproc),count"
echo "machine,load_1m,$(cut -d' ' -f1 /proc/loadavg),count"
