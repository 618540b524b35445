"""Score a compound library against fingerprints in parallel."""
import os, sys
from multiprocessing import Pool
import numpy as np

WORKERS = int(os.environ.get("NWORKERS", "2"))
LIB, DIM = int(sys.argv[1]), int(sys.argv[2])


def score(args):
    seed, lib = args
    r = np.random.default_rng(seed)
    q = (r.random(lib.shape[1]) > 0.5).astype(float)
    inter = np.minimum(lib, q)
    return float((inter.sum(1) / np.maximum(lib, q).sum(1)).max())


if __name__ == "__main__":
    lib = (np.random.default_rng(0).random((LIB, DIM)) > 0.6).astype(float)
    with Pool(WORKERS) as pool:
        best = pool.map(score, [(s, lib) for s in range(WORKERS * 3)], chunksize=1)
    print(f"workers={WORKERS} library={LIB} best={max(best):.4f}")
