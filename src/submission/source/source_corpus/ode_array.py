import os, sys
import numpy as np

member = int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))
nens, tend, dt_save = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
# each array task takes a different rho, and doubles the ensemble for the high ones
rho = 20 + 4 * member
if member >= 3:
    nens *= 2
dt = 0.005
rng = np.random.default_rng(member)
x = rng.normal(size=(3, nens))


def f(x):
    return np.stack([10 * (x[1] - x[0]), x[0] * (rho - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])


traj = []
for i in range(int(tend / dt)):
    k1 = f(x); k2 = f(x + dt / 2 * k1); k3 = f(x + dt / 2 * k2); k4 = f(x + dt * k3)
    x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    if i % max(1, round(dt_save / dt)) == 0:
        traj.append(x.copy())
traj = np.array(traj)
print(f"member {member} rho {rho} nens {nens} traj {traj.shape} spread {traj[-1].std():.3f}")
np.save(f"mean_{member}.npy", traj.mean(-1))
