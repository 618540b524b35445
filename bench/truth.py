#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run by truth.sh. Jobs of known behaviour; what Expanse says of each against what the kernel said.

References, none of them read by Expanse's own code:
  CPU       getrusage of the work and its children, reported by the work itself
  enforced  memory.max_usage_in_bytes of the job's cgroup, read every 20 ms until it is gone
  I/O       read_bytes and write_bytes of /proc/<pid>/io of the work and its children, the counters
            that taskstats sends when a process ends
  need      the least --mem at which the same job completes, by bisection
Bars: CPU 1 %, enforced 2 %, I/O 2 % (below 1 MiB: 64 KiB), need 3 %; or a floor that says why.
"""
import glob
import json
import os
import subprocess
import sys
import threading
import time

MIB = 1 << 20
DIR = os.environ["TRUTH_DIR"]
OUT = f"{DIR}/out"
KINDS = ["anon", "shmem", "cache", "fork", "threads", "spike", "mmap", "tmpfs", "short"]
AT_ONCE = 9


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def submit(kind, mib, cpu, mem_mib, name):
    result = f"{OUT}/{name}.json"
    script = f"#!/bin/sh\nexec {DIR}/truth_work {kind} {mib} {cpu} {result} {OUT}\n"
    path = f"{OUT}/{name}.sh"
    with open(path, "w", encoding="utf-8") as f:
        f.write(script)
    os.chmod(path, 0o755)
    done = run(os.environ["LAB"], "as", "alice", "--", "sbatch", "--parsable", f"--mem={mem_mib}M",
               "--cpus-per-task=1", "--output=/dev/null", f"--job-name={name}", "--no-requeue", path)
    if done.returncode != 0:
        sys.exit(f"sbatch: {done.stderr}")
    return done.stdout.strip().split(";")[0]


class PeakWatcher(threading.Thread):
    """Largest max_usage_in_bytes of every job's cgroup."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peaks = {}

    def run(self):
        while True:
            for path in glob.glob(f"/sys/fs/cgroup/memory/slurm_{os.environ['LAB_PREFIX']}*/uid_*/job_*"):
                try:
                    with open(path + "/memory.max_usage_in_bytes", encoding="ascii") as f:
                        value = int(f.read())
                except (OSError, ValueError):
                    continue
                job = path.rsplit("_", 1)[1]
                self.peaks[job] = max(self.peaks.get(job, 0), value)
            time.sleep(0.02)


def states(ids):
    done = run("sacct", "-n", "-P", "-X", "-o", "JobIDRaw,State", "-j", ",".join(ids))
    return dict(line.split("|")[:2] for line in done.stdout.splitlines() if "|" in line)


def await_jobs(ids, seconds=300):
    end = time.time() + seconds
    while time.time() < end:
        now = states(ids)
        if len(now) == len(ids) and all(
                s.split()[0] not in ("PENDING", "RUNNING", "COMPLETING") for s in now.values()):
            return now
        time.sleep(0.5)
    return states(ids)


def executions():
    done = run(os.environ["TRUTH_FACTS"], *glob.glob(f"{DIR}/shared/spool/*"))
    if done.returncode != 0:
        sys.exit(f"truth_facts: {done.stderr}")
    return {e["native_id"]: e for e in map(json.loads, done.stdout.splitlines())}


def measured(execution, field):
    m = execution.get(field, {})
    value = m.get("value")
    return (float(value) if value is not None else None), m.get("bound", ""), m.get("reason", "")


class Score:
    def __init__(self):
        self.rows = {}

    def add(self, field, kind, said, reference, tolerance, slack=0):
        value, bound, reason = said
        row = self.rows.setdefault(field, {"held": 0, "floor": 0, "missed": []})
        if value is None:
            row["missed"].append(f"{kind}: absent ({reason})")
            return "absent"
        error = abs(value - reference)
        relative = error / reference if reference else 0
        if relative <= tolerance or error <= slack:
            row["held"] += 1
            return f"{100 * (value - reference) / reference if reference else 0:+.2f}%"
        if bound == "BOUND_AT_LEAST" and reason and value <= reference * (1 + tolerance):
            row["floor"] += 1
            return f"floor {value / reference:.2f}"
        row["missed"].append(f"{kind}: said {value:.0f} {bound} ({reason}), was {reference:.0f}")
        return f"MISSED {100 * (value - reference) / reference if reference else 0:+.2f}%"


def main_jobs(count, score):
    plan = []
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        plan.append((kind, 110 + 20 * (i // len(KINDS)), 2.0, f"{kind}{i}"))
    ids = {}
    for start in range(0, len(plan), AT_ONCE):
        batch = {submit(k, m, c, 3 * m + 60, n): (k, m, c, n) for k, m, c, n in plan[start:start + AT_ONCE]}
        await_jobs(list(batch))
        ids.update(batch)
    return ids


def compare(ids, peaks, score):
    time.sleep(8)  # the samplers' last words
    known = executions()
    print("job,kind,mib,cpu,enforced,read,write,need_mib,need_bound")
    for job, (kind, mib, _, name) in ids.items():
        e = known.get(job, {})
        try:
            with open(f"{OUT}/{name}.json", encoding="utf-8") as f:
                truth = json.loads(f.readline())
        except (OSError, ValueError):
            score.add("completed", name, (None, "", "the work reported nothing"), 1, 0)
            continue
        cells = [score.add("cpu", name, measured(e, "cpu_seconds"), truth["cpu"], 0.01),
                 score.add("enforced", name, measured(e, "memory_peak_enforced"), peaks.get(job, 0), 0.02)]
        for field, key in (("read", "io_read_bytes"), ("write", "io_write_bytes")):
            cells.append(score.add(field, name, measured(e, key), truth[field], 0.02,
                                   65536 if truth[field] < MIB else 0))
        need, bound, _ = measured(e, "memory_need")
        cells += [f"{need / MIB:.1f}" if need else "absent", bound]
        print(",".join([job, kind, str(mib)] + cells), flush=True)
    return known


def bisect(ids, known, count, score):
    """The least --mem, in MiB, at which each completes; all searched at once."""
    chosen = list(ids.items())[:count]
    search = {}
    for job, (kind, mib, _, name) in chosen:
        need, bound, reason = measured(known.get(job, {}), "memory_need")
        guess = int((need or mib * MIB) / MIB)
        search[job] = {"kind": kind, "mib": mib, "low": max(8, guess // 2), "high": 3 * mib + 60,
                       "said": (need, bound, reason), "guess": guess}
    for turn in range(9):
        running = {}
        for job, s in search.items():
            if s["high"] - s["low"] <= 1:
                continue
            # The first two look close to what was said, which saves most of the rest.
            mid = {0: s["guess"] + 2, 1: s["guess"] - 3}.get(turn, (s["low"] + s["high"]) // 2)
            if not s["low"] < mid < s["high"]:
                mid = (s["low"] + s["high"]) // 2
            running[submit(s["kind"], s["mib"], 0.1, mid, f"b{turn}_{job}")] = (job, mid)
        if not running:
            break
        for one, state in await_jobs(list(running)).items():
            job, mid = running[one]
            search[job]["high" if state.startswith("COMPLETED") else "low"] = mid
    print("job,kind,mib,least_mem_mib,said_need_mib,need")
    for job, s in search.items():
        cell = score.add("need", f"{s['kind']}{job}", s["said"], s["high"] * MIB, 0.03, MIB)
        print(f"{job},{s['kind']},{s['mib']},{s['high']},{(s['said'][0] or 0) / MIB:.1f},{cell}", flush=True)


def main():
    count, bisections = int(sys.argv[1]), int(sys.argv[2])
    watcher = PeakWatcher()
    watcher.start()
    score = Score()
    started = time.time()
    ids = main_jobs(count, score)
    known = compare(ids, watcher.peaks, score)
    if bisections:
        bisect(ids, known, bisections, score)
    missed = 0
    print("field,held,floor_with_reason,missed")
    for field, row in score.rows.items():
        print(f"{field},{row['held']},{row['floor']},{len(row['missed'])}")
        missed += len(row["missed"])
        for why in row["missed"][:12]:
            print(f"  {why}")
    load = os.getloadavg()[0]
    print(f"{len(ids)} jobs in {time.time() - started:.0f} s, load {load:.1f}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
