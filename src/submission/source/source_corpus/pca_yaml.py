import sys, yaml
import numpy as np

cfg = yaml.safe_load(open(sys.argv[1] if len(sys.argv) > 1 else "config.yaml"))
n, m = cfg["matrix"]["rows"], cfg["matrix"]["cols"]
r = np.random.default_rng(cfg.get("seed", 0))
A = r.normal(size=(n, m)) @ np.diag(1.0 / np.arange(1, m + 1))
A = A - A.mean(0)
k = cfg["n_components"]
if cfg["method"] == "full":
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    scores = U[:, :k] * S[:k]
else:
    Q = np.linalg.qr(A @ r.normal(size=(m, k + 10)))[0]
    for _ in range(cfg.get("power_iter", 2)):
        Q = np.linalg.qr(A @ (A.T @ Q))[0]
    Ub, S, Vt = np.linalg.svd(Q.T @ A, full_matrices=False)
    scores = (Q @ Ub)[:, :k] * S[:k]
print("explained", np.round((S[:k] ** 2 / (S ** 2).sum())[:5], 4))
np.savetxt("scores.txt", scores[:100], fmt="%.4f")
