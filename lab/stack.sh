# Sourced by ./demo, the live tests and the benchmarks: a SLURM lab with Expanse on it, all below
# $STACK_DIR. Needs root and a build in $BIN. Functions print nothing on success.
#
#   STACK_DIR   where everything lives (default /var/lib/expanse-demo); LAB_* settings follow from it
#   STACK_PORT  first of three ports for the planes (default 7701)
#   BIN         folder of the binaries

STACK_DIR=${STACK_DIR:-/var/lib/expanse-demo}
STACK_PORT=${STACK_PORT:-7701}
export LAB_DIR=$STACK_DIR/lab LAB_NODES=${LAB_NODES:-2} LAB_PREFIX=${LAB_PREFIX:-n} LAB_PORT=${LAB_PORT:-17100} LAB_CPUS=${LAB_CPUS:-4}
SHARED=$STACK_DIR/shared                       # the cluster's shared file system
CONFIG=$STACK_DIR/controller/config.json       # the compute credential
SLURM_CONF_FILE=$LAB_DIR/etc/slurm.conf
HOOK_DIR=$STACK_DIR/hooks                      # node-local; one machine plays every node
CONTROL_URL=http://127.0.0.1:$STACK_PORT
DATA_URL=http://127.0.0.1:$((STACK_PORT + 1))
LAB=${LAB:-$PWD/lab/slurm-lab}

stack_die() { echo "$*" >&2; exit 1; }
# its own HOME: the credentials of a demo must not replace the user's own
expanse() { HOME=$STACK_DIR/home "$BIN/expanse" "$@"; }
as() { local user=$1; shift; LAB_PATH=$BIN:/usr/local/bin:/usr/bin:/bin "$LAB" as "$user" -- "$@"; }
slurm() { env SLURM_CONF="$SLURM_CONF_FILE" "$@"; }

# ---- processes by pid file; they never see the caller's environment
spawn() { # name user command...
  local name=$1 user=$2; shift 2
  local run=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ "SLURM_CONF=$SLURM_CONF_FILE")
  [ "$user" = root ] || run=(setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups -- "${run[@]}")
  setsid "${run[@]}" "$@" >>"$STACK_DIR/log/$name.log" 2>&1 </dev/null &
  echo $! >"$STACK_DIR/run/$name.pid"
}
pid_of() { # name: its pid when it runs and is ours
  local pid
  pid=$(cat "$STACK_DIR/run/$1.pid" 2>/dev/null) || return 1
  grep -qa expanse "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}
end() { # name [signal]
  local pid
  if pid=$(pid_of "$1"); then
    kill "-${2:-TERM}" "$pid" 2>/dev/null || true
    local i; for i in $(seq 200); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
    if kill -0 "$pid" 2>/dev/null; then kill -KILL "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$STACK_DIR/run/$1.pid"
}

# ---- parts
stack_slurm() {
  mkdir -p "$STACK_DIR"/{run,log,home} "$SHARED"
  chmod 755 "$STACK_DIR" "$SHARED"
  "$LAB" start >>"$STACK_DIR/log/lab.log" 2>&1 || { tail -n 5 "$STACK_DIR/log/lab.log" >&2; stack_die "SLURM did not start"; }
}
stack_planes() { # extra arguments of `expanse up`
  end planes
  rm -f "$STACK_DIR/ready"
  spawn planes root "$BIN/expanse" up --data-dir "$STACK_DIR/data" --base-port "$STACK_PORT" \
    --ready-file "$STACK_DIR/ready" --owner-email alice@example.org "$@"
  local i; for i in $(seq 400); do [ -e "$STACK_DIR/ready" ] && return 0; sleep 0.05; done
  tail -n 5 "$STACK_DIR/log/planes.log" >&2; stack_die "the planes did not start; see $STACK_DIR/log/planes.log"
}
stack_login() { EXPANSE_API_KEY=$(cat "$STACK_DIR/data/owner.key") expanse login --control-plane "$CONTROL_URL" >/dev/null; }

install_command() { # prints the words after `expanse`
  echo compute install --type slurm --role controller --daemon-binary "$BIN/expanse-daemon" \
    --shared-prefix "$SHARED" --control-plane "$CONTROL_URL" --data-plane "$DATA_URL" --config "$CONFIG" \
    --user slurm --slurm-conf "$SLURM_CONF_FILE" --patch-slurm-conf=true --systemd=false
}
# EXPANSE_INSTALL_TOKEN in the environment
stack_install() { SLURM_CONF=$SLURM_CONF_FILE EXPANSE_HOOK_DIR=$HOOK_DIR expanse $(install_command); }

stack_register() { # prints the install token
  expanse compute register --type slurm --name "${1:-lab}" --json | jq -r .install_token
}
stack_controller() { end controller; spawn controller slurm "$SHARED/bin/expanse-daemon" run --role controller --config "$CONFIG" "$@"; }
stack_samplers() {
  local i; for ((i = 1; i <= LAB_NODES; i++)); do
    end "sampler-$LAB_PREFIX$i"
    spawn "sampler-$LAB_PREFIX$i" slurm "$SHARED/bin/expanse-daemon" run --role sampler --shared-prefix "$SHARED" --node "$LAB_PREFIX$i"
  done
}
stack_await_active() {
  local i; for i in $(seq 600); do
    expanse compute list --json | jq -e '.computes[]? | select(.state == "COMPUTE_STATE_ACTIVE")' >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  stack_die "the compute did not become active; see $STACK_DIR/log/controller.log"
}
stack_stop() {
  [ -d "$STACK_DIR" ] || return 0
  # Without /proc no pid can be told to be ours, and the pid files would be removed over live processes.
  [ -e /proc/self/cmdline ] || stack_die "/proc is not mounted: cannot tell which processes are ours; nothing was ended"
  local f; for f in "$STACK_DIR"/run/*.pid; do [ -e "$f" ] && end "$(basename "$f" .pid)"; done
  "$LAB" stop >/dev/null
}

# ---- questions about jobs
execution_of() { # native id: the newest execution as JSON, or nothing
  expanse executions --limit 500 --json | jq -c --arg id "$1" '[.executions[]? | select(.native_id == $id)][0] // empty'
}
await_end() { # native id, seconds
  local i s
  for ((i = 0; i < ${2:-120} * 4; i++)); do
    s=$(execution_of "$1" | jq -r '.status // empty')
    case $s in EXECUTION_STATUS_SUCCEEDED | EXECUTION_STATUS_FAILED | EXECUTION_STATUS_CANCELLED | EXECUTION_STATUS_UNKNOWN) return 0 ;; esac
    sleep 0.25
  done
  return 1
}
