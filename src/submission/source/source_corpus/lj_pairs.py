#!/usr/bin/env python3
"""Toy Lennard-Jones fluid. All pairs, no neighbour list (yet)."""
import argparse
import numpy as np

ap = argparse.ArgumentParser()
ap.add_argument("--natoms", type=int, default=1000)
ap.add_argument("--steps", type=int, default=10)
ap.add_argument("--dt", type=float, default=0.002)
ap.add_argument("--seed", type=int, default=7)
args = ap.parse_args()

rng = np.random.default_rng(args.seed)
DTYPE = np.float64
L = (args.natoms / 0.8) ** (1 / 3)
side = int(np.ceil(args.natoms ** (1 / 3)))
grid = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3)[: args.natoms]
x = (grid * (L / side)).astype(DTYPE)
v = rng.normal(size=x.shape).astype(DTYPE)


def forces(x):
    d = x[:, None, :] - x[None, :, :]
    d -= L * np.round(d / L)
    r2 = (d ** 2).sum(-1)
    np.fill_diagonal(r2, np.inf)
    inv6 = 1.0 / r2 ** 3
    e = 4 * (inv6 ** 2 - inv6).sum() / 2
    f = ((48 * inv6 ** 2 - 24 * inv6) / r2)[:, :, None] * d
    return f.sum(1), e


f, e = forces(x)
for s in range(args.steps):
    v += 0.5 * args.dt * f
    x = (x + args.dt * v) % L
    f, e = forces(x)
    v += 0.5 * args.dt * f
    if s % 2 == 0:
        print(f"step {s} epot/N {e / args.natoms:.4f} T {(v ** 2).mean():.4f}", flush=True)
print("done")
