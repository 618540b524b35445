#!/usr/bin/env python3
"""check_corpus_scripts.py [CORPUS=../shared/corpus] [READER=build/dev/bin/read_sbatch]

Reads every job script of the corpus with our reader and compares memory, walltime, cores, tasks,
nodes and job name with what SLURM recorded for the job; then lays out each job's files as they
were at submission and checks that the bundle holds the sources the script runs and that repeats of
the same sources have the same identity. Prints name,metric,value,unit; exit 1 on a difference.
Says so and exits 0 where there is no corpus.
"""
import collections
import json
import os
import subprocess
import sys
import tarfile
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
corpus = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../../shared/corpus")
reader = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "../build/dev/bin/read_sbatch")
if not os.path.exists(os.path.join(corpus, "jobs.jsonl")):
    print("check_corpus_scripts: no corpus at", corpus, "- nothing to do")
    sys.exit(0)
jobs = [json.loads(line) for line in open(os.path.join(corpus, "jobs.jsonl"))]

with tempfile.TemporaryDirectory() as work:
    with tarfile.open(os.path.join(corpus, "blobs.tar.gz")) as tar:
        tar.extractall(work)
    blob = lambda sha: os.path.join(work, "blobs", sha)
    wrong, compared = [], collections.Counter()
    paths = []
    for job in jobs:
        where = os.path.join(work, "jobs", str(job["id"]))
        for f in job["bundle"]:
            to = os.path.join(where, f["path"])
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(blob(f["sha"]), "rb") as a, open(to, "wb") as b:
                b.write(a.read())
            os.chmod(to, 0o755)
        script = os.path.join(where, job["script_path"])
        os.makedirs(os.path.dirname(script), exist_ok=True)
        if not os.path.exists(script):
            with open(blob(job["script_sha"]), "rb") as a, open(script, "wb") as b:
                b.write(a.read())
        paths.append(script)
    lines = subprocess.run([reader, "--bundle", *paths], stdout=subprocess.PIPE, check=True).stdout
    read = [json.loads(line) for line in lines.splitlines()]

    missed, extra, identities = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for job, ours in zip(jobs, read):
        want, line = job["requested"], job["submit_line"]
        # Options on the command line win over the script's; those jobs say nothing about the reader.
        overrides = [w for w in line.split()[1:] if w.startswith("-")]
        overrides = [w for w in overrides if line.split().index(w) < line.split().index(job["script_path"])] \
            if job["script_path"] in line.split() else overrides
        if overrides:
            compared["skipped_command_line_options"] += 1
        else:
            form = {"mem": "node", "mem-per-cpu": "cpu", "mem-per-gpu": "gpu", "default": "default"}[ours["mem_form"]]
            checks = [("mem_form", form, want["mem_form"]), ("cpus", ours["cpus"], want["cpus"]),
                      ("ntasks", ours["tasks"], want["ntasks"]),
                      ("cpus_per_task", ours["cpus_per_task"], want["cpus_per_task"]),
                      ("job_name", ours["job_name"], job["job_name"])]
            if form != "default":
                checks.append(("mem_mb", ours.get("total_mem_mib"), want["mem_mb"]))
            if "time_minutes" in ours:
                checks.append(("timelimit_s", ours["time_minutes"] * 60, want["timelimit_s"]))
            for name, got, expected in checks:
                compared[name] += 1
                if got != expected:
                    wrong.append(f"job {job['id']} {name}: {got} instead of {expected}")
            if ours["refusals"]:
                wrong.append(f"job {job['id']}: refused: {ours['refusals']}")
        # Which of the folder's files the script really uses is not recorded; a source whose name
        # the script or another source mentions is expected in the bundle.
        have = set(ours["bundle"])
        names = {f["path"] for f in job["bundle"]}
        texts = " ".join(open(blob(f["sha"]), errors="replace").read() for f in job["bundle"]
                         if f["path"] in have)
        for name in sorted(names - have):
            stem = os.path.splitext(os.path.basename(name))[0]
            if name.endswith((".py", ".c", ".h", ".sh", ".R", ".jl", ".m", ".f90", ".pl", ".cpp")) and stem in texts \
                    and not name.startswith("old/"):
                missed[f"{job['family']}: {name}"] += 1
        identities[(job["script_sha"], tuple(sorted((f["path"], f["sha"]) for f in job["bundle"])))].add(
            (ours["script_hash"], ours["tree_hash"]))

    for w in wrong[:40]:
        print("different:", w)
    for name, n in sorted(missed.items()):
        print("mentioned but not in the bundle:", name, f"({n} jobs)")
    unstable = sum(1 for v in identities.values() if len(v) > 1)
    print("corpus_scripts,jobs,%d,count" % len(jobs))
    for name, n in sorted(compared.items()):
        print(f"corpus_scripts,compared_{name},{n},count")
    print(f"corpus_scripts,differences,{len(wrong)},count")
    print(f"corpus_scripts,mentioned_but_missing,{sum(missed.values())},count")
    print(f"corpus_scripts,same_files_other_identity,{unstable},count")
    sys.exit(1 if wrong or unstable else 0)
