#!/usr/bin/env python3
"""check_sbatch_reader.py [COUNT=400] [SEED=1] [READER=build/dev/bin/read_sbatch]

Submits COUNT generated batch scripts, held, to a real SLURM (SLURM_CONF of a running lab, e.g.
lab/slurm-lab) and compares what `scontrol show job` says with what our reader says of the same
bytes; what sbatch refuses, our reader has to refuse. Prints name,metric,value,unit and the first
differences; exit 1 when there is one. Says so and exits 0 without a SLURM.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
reader = sys.argv[3] if len(sys.argv) > 3 else os.path.join(here, "../build/dev/bin/read_sbatch")
run = lambda *a: subprocess.run(a, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    ready = run("sinfo", "-h").returncode == 0
except FileNotFoundError:
    ready = False
if not ready:
    print("check_sbatch_reader: no SLURM answers (set SLURM_CONF) - nothing to do")
    sys.exit(0)

VALUES = {
    "mem": ["1G", "512", "2048M", "4g", "900MB", "1025K", "0", "4GiB", "1.5G", "2T", "-1", ""],
    "mem-per-cpu": ["1G", "512", "100m", "1GB", "x"],
    "mem-per-gpu": ["1G", "2048"],
    "time": ["10", "1:30", "1:30:00", "0", "1-0", "0-1:30", "1-", "infinite", "90:00", "1d", "1:2:3:4", "::"],
    "nodes": ["1", "2", "1-2", "2-1", "x", "1-1"],
    "ntasks": ["1", "4", "+2", "0", "3x"],
    "cpus-per-task": ["1", "2", "8", "0"],
    "ntasks-per-node": ["1", "2", "4"],
    "gres": ["gpu:1", "gpu:fake:2", "gpu", "gpu:", "none"],
    "gpus": ["1", "fake:2", "2"],
    "gpus-per-node": ["1", "fake:1"],
    "gpus-per-task": ["1"],
    "array": ["1-3", "0-10:2%2", "1,3,5", "5-1", "x"],
    "job-name": ["a", "with space", "tr#in", "quo\"te", "caf\u00e9", "--x", "x\\y"],
    "comment": ["x", "# no comment", "it's"],
    "output": ["x.out", "%x-%j.log"],
    "nice": ["10"], "mail-type": ["END"], "begin": ["now+1hour"],
}
SHORT = {"time": "t", "nodes": "N", "ntasks": "n", "cpus-per-task": "c", "job-name": "J", "output": "o",
         "gpus": "G", "array": "a", "begin": "b"}
OPTIONAL = {"nice"}

def quoted(value):
    plain = not re.search(r"[\s#'\"\\]", value)
    how = rng.choice(["plain", "double", "single", "escape"])
    if plain and how == "plain":
        return value
    if how == "single" and not re.search(r"['\\]", value):
        return "'" + value + "'"
    if how == "escape" and value:
        return re.sub(r"([\s#'\"\\])", r"\\\1", value)
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'

def option(name):
    value = rng.choice(VALUES[name])
    text = quoted(value)
    forms = ["--{0}={1}"]
    if name not in OPTIONAL:
        forms.append("--{0} {1}")
        if rng.random() < 0.1:
            forms.append("--{2}={1}")
    if name in SHORT and value:
        forms += ["-{3} {1}", "-{3}{1}"]
    return rng.choice(forms).format(name, text, name[:max(3, len(name) - 2)], SHORT.get(name, ""))

def script():
    lines = [rng.choice(["#!/bin/bash", "#!/bin/sh -l", "#! /usr/bin/env python3"])]
    names = rng.sample(sorted(VALUES), rng.randint(1, 5))
    # Refusals are rare in life: most scripts get values that sbatch takes.
    for name in names + ([rng.choice(names)] if rng.random() < 0.2 else []):
        lead = rng.choice(["#SBATCH ", "#SBATCH  ", "#SBATCH\t", "#SBATCH"])
        tail = rng.choice(["", "", "  # why", "\t", " #--mem=7G"])
        lines.append(lead + option(name) + tail)
        if rng.random() < 0.2:
            lines.append(rng.choice(["", "# text", "  ", "##SBATCH --mem=3G", " #SBATCH -n 7", "# SBATCH -c 5"]))
    if rng.random() < 0.05:
        lines.append("#SBATCH " + rng.choice(["--bogus=1", "word", "--ti=3", "--mem-per=1G", "-Z", "--hold=1"]))
    lines.append(rng.choice(["echo hi", "srun true", ": # x"]))
    if rng.random() < 0.2:
        lines.append("#SBATCH --mem=77G -n 9")
    return "\n".join(lines) + rng.choice(["\n", ""])

def size(text):  # "4G" of scontrol, in MiB
    m = re.match(r"^([\d.]+)([KMGT]?)$", text)
    return round(float(m.group(1)) * {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1 << 20}[m.group(2)]) if m else None

def minutes(text):
    if text == "UNLIMITED":
        return 0
    d, _, rest = text.rpartition("-")
    h, m, s = rest.split(":")
    return int(d or 0) * 1440 + int(h) * 60 + int(m) + (1 if int(s) else 0)

differences, accepted, refused, compared = [], 0, 0, 0
with tempfile.TemporaryDirectory() as work:
    os.chmod(work, 0o755)
    for i in range(count):
        text, path = script(), os.path.join(work, "job%d.sh" % i)
        with open(path, "wb") as f:
            f.write(text.encode())
        out = run("sbatch", "--hold", "--parsable", path)
        ours = json.loads(run(reader, path).stdout)
        job = out.stdout.strip().splitlines()[-1].split(";")[0] if out.stdout.strip() else ""
        if out.returncode != 0 or not job.isdigit():
            # What only slurmctld can know (no such resources, array limits) is not the reader's.
            local = re.search(r"submission failed|allocation failure|did not request any GPU|"
                              r"Requested node configuration", out.stdout) is None
            refused += 1
            if local and not ours["refusals"]:
                differences.append((text, "sbatch refuses, we do not: " + out.stdout.strip()[-200:]))
            continue
        accepted += 1
        shown = run("scontrol", "show", "job", "-o", job).stdout.splitlines()[0]
        run("scancel", job)
        field = lambda name: (re.search(r"(?:^| )%s=(\S*)" % re.escape(name), shown) or [None, None])[1]
        if ours["refusals"]:
            differences.append((text, "sbatch takes it, we refuse: %s" % ours["refusals"]))
            continue
        checks = []
        name = re.search(r"JobName=(.*?) UserId=", shown)[1]
        checks.append(("job_name", ours["job_name"], name))
        checks.append(("tasks", ours["tasks"], int(field("NumTasks"))))
        checks.append(("cpus_per_task", ours["cpus_per_task"], int(field("CPUs/Task"))))
        if "cpu_cores" not in ours["unresolved"]:
            checks.append(("cpus", ours["cpus"], int(field("NumCPUs"))))
        if ours["mem_form"] == "mem":
            checks.append(("mem", ours.get("mem_mib"), size(field("MinMemoryNode") or "")))
        if ours["mem_form"] == "mem-per-cpu":
            checks.append(("mem_per_cpu", ours.get("mem_mib"), size(field("MinMemoryCPU") or "")))
        if "time_minutes" in ours:
            checks.append(("time", ours["time_minutes"], minutes(field("TimeLimit"))))
        if "nodes_max" in ours:
            low, _, high = field("NumNodes").partition("-")
            checks.append(("nodes", ours["nodes"], int(low)))
        if "gpus" not in ours:
            checks.append(("gpus", None, field("TresPerNode") if "gpu" in (field("TresPerNode") or "") else None))
        for what, got, want in checks:
            compared += 1
            if got != want:
                differences.append((text, "%s: %r instead of %r" % (what, got, want)))

for text, why in differences[:15]:
    print("different:", why, "\n" + "\n".join("    " + line for line in text.splitlines()))
print(f"sbatch_reader,scripts,{count},count")
print(f"sbatch_reader,accepted,{accepted},count")
print(f"sbatch_reader,refused,{refused},count")
print(f"sbatch_reader,fields_compared,{compared},count")
print(f"sbatch_reader,differences,{len(differences)},count")
sys.exit(1 if differences else 0)
