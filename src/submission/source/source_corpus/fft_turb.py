"""Energy spectrum of synthetic isotropic turbulence."""
import os
import numpy as np
from params import N, NSNAP, SLOPE

rng = np.random.default_rng(int(os.environ.get("SEED", 1)))
k1 = np.fft.fftfreq(N, 1 / N)
kz = np.fft.rfftfreq(N, 1 / N)
kk = np.sqrt(k1[:, None, None] ** 2 + k1[None, :, None] ** 2 + kz[None, None, :] ** 2)
kk[0, 0, 0] = 1.0
bins = np.arange(0.5, N // 2)
total = 0
for s in range(NSNAP):
    E = 0
    for comp in "uvw":
        u = np.fft.irfftn(np.fft.rfftn(rng.normal(size=(N, N, N))) * kk ** (SLOPE / 2 - 1), s=(N, N, N))
        uh = np.fft.rfftn(u)
        E = E + np.abs(uh) ** 2
    spec, _ = np.histogram(kk, bins=bins, weights=E)
    total = total + spec
    print(f"snapshot {s}: energy {spec.sum():.3e}", flush=True)
np.savetxt("spectrum.dat", total / NSNAP)
