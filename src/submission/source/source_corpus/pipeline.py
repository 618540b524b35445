import sys
import numpy as np
n, nsig = int(sys.argv[1]), int(sys.argv[2])
t = np.linspace(0, 100, n)
r = np.random.default_rng(3)
sig = np.stack([np.sin((k + 1) * t) + 0.3 * r.normal(size=n) for k in range(nsig)])
np.save("raw.npy", sig)
print("raw", sig.shape, sig.nbytes // 2 ** 20, "MiB")
