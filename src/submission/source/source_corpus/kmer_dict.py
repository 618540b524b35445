#!/usr/bin/env python3
"""Canonical k-mer spectrum of a FASTA file."""
import argparse
from collections import Counter

COMP = str.maketrans("ACGT", "TGCA")


def read_fasta(path):
    seq = []
    with open(path) as fh:
        for line in fh:
            if line.startswith(">"):
                if seq:
                    yield "".join(seq)
                seq = []
            else:
                seq.append(line.strip())
    if seq:
        yield "".join(seq)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("fasta")
    ap.add_argument("-k", type=int, default=21)
    ap.add_argument("-o", "--out", default="spectrum.tsv")
    a = ap.parse_args()
    counts = {}
    for s in read_fasta(a.fasta):
        rc = s.translate(COMP)[::-1]
        n = len(s)
        for i in range(n - a.k + 1):
            x, y = s[i:i + a.k], rc[n - a.k - i:n - i]
            x = x if x < y else y
            counts[x] = counts.get(x, 0) + 1
    spec = Counter(counts.values())
    with open(a.out, "w") as o:
        for m in sorted(spec):
            print(m, spec[m], sep="\t", file=o)
    print("distinct", len(counts), "total", sum(counts.values()))


if __name__ == "__main__":
    main()
