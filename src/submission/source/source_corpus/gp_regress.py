import argparse, json
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

ap = argparse.ArgumentParser()
ap.add_argument("-c", "--config", default="gp.json")
ap.add_argument("-n", type=int, help="override number of stations")
a = ap.parse_args()
cfg = json.load(open(a.config))
n = a.n or cfg["stations"]
rng = np.random.default_rng(cfg["seed"])
X = rng.random((n, 2))
y = np.sin(6 * X[:, 0]) * np.cos(4 * X[:, 1]) + 0.1 * rng.normal(size=n)
best = None
for i in range(cfg["restarts"]):
    ls = cfg["length_scale"] * (1 + 0.5 * i)
    K = np.exp(-0.5 * cdist(X, X, "sqeuclidean") / ls ** 2)
    K[np.diag_indices(n)] += cfg["noise"]
    c = cho_factor(K, lower=True)
    alpha = cho_solve(c, y)
    nll = 0.5 * y @ alpha + np.log(np.diag(c[0])).sum()
    print(f"ls={ls:.3f} nll={nll:.2f}", flush=True)
    best = min(best, (nll, ls)) if best else (nll, ls)
print("best", best)
