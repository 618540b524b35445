#!/usr/bin/env python3
"""check_boundary.py FILE: the bytes a control plane received hold no workload data. FILE is what
`--log-received-control` recorded. Looks for anything of the lab's jobs: names, users, paths, commands,
script text, metrics. Exit 1 with each finding."""
import re
import sys

data = open(sys.argv[1], "rb").read()
if b"/expanse.control.v1." not in data:
    print("the record holds no control-plane request; nothing was checked")
    sys.exit(1)
forbidden = [rb"train\.slurm", rb"\.slurm\b", rb"#SBATCH", rb"sbatch", rb"/work/(alice|bob)", rb"train\.py", rb"report\.py",
             rb"oom-batch", rb"oom-step", rb"missing-module", rb"segfault", rb"multistep", rb"python3", rb"\bbob\b",
             rb"memory-anon", rb"memory_need", rb"OUT_OF_MEMORY", rb"stderr", rb"Traceback", rb"expanse\.data\.v1", rb"b1:[0-9a-f]{64}"]
found = 0
for pattern in forbidden:
    for m in re.finditer(pattern, data):
        found += 1
        around = data[max(0, m.start() - 40):m.end() + 40]
        print(f"{pattern.decode()}: {around!r}")
print(f"boundary: {len(data)} bytes received by the control plane, {found} findings", file=sys.stderr)
sys.exit(1 if found else 0)
