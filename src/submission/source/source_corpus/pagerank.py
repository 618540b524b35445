import argparse, random, sys

ap = argparse.ArgumentParser()
ap.add_argument("--nodes", type=int, default=50000)
ap.add_argument("--avg-degree", type=int, default=8)
ap.add_argument("--iterations", type=int, default=10)
ap.add_argument("--impl", default="dict")
a = ap.parse_args()
random.seed(5)


def edges():
    """preferential attachment, roughly"""
    targets = list(range(10))
    for u in range(10, a.nodes):
        for _ in range(a.avg_degree):
            v = targets[random.randrange(len(targets))]
            yield u, v
            targets.append(v)
        targets.append(u)


if a.impl == "dict":
    out = {}
    for u, v in edges():
        out.setdefault(u, []).append(v)
    rank = dict.fromkeys(range(a.nodes), 1 / a.nodes)
    for it in range(a.iterations):
        new = dict.fromkeys(rank, 0.15 / a.nodes)
        for u, vs in out.items():
            share = 0.85 * rank[u] / len(vs)
            for v in vs:
                new[v] += share
        rank = new
    top = sorted(rank, key=rank.get)[-5:]
else:
    import numpy as np
    e = np.fromiter((x for uv in edges() for x in uv), dtype=np.int64).reshape(-1, 2)
    deg = np.bincount(e[:, 0], minlength=a.nodes)
    r = np.full(a.nodes, 1 / a.nodes)
    for it in range(a.iterations):
        w = r / np.maximum(deg, 1)
        r = 0.15 / a.nodes + 0.85 * np.bincount(e[:, 1], weights=w[e[:, 0]], minlength=a.nodes)
    top = np.argsort(r)[-5:]
print("top", list(top))
