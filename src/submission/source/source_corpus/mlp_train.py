import argparse, time
import numpy as np
from model import MLP
from data import synthetic_digits

p = argparse.ArgumentParser(description="MLP on synthetic digits")
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--hidden", type=int, default=512)
p.add_argument("--epochs", type=int, default=2)
p.add_argument("--n-train", type=int, default=8000)
p.add_argument("--lr", type=float, default=0.05)
p.add_argument("--log-every", type=int, default=50)
a = p.parse_args()

X, y = synthetic_digits(a.n_train)
net = MLP([784, a.hidden, a.hidden // 2, 10])
print(f"params: {net.n_params():,}  batch {a.batch_size}")
for ep in range(a.epochs):
    t0 = time.time()
    order = np.random.permutation(len(X))
    loss = 0.0
    for i in range(0, len(X), a.batch_size):
        j = order[i:i + a.batch_size]
        loss += net.step(X[j], y[j], a.lr) * len(j)
        if (i // a.batch_size) % a.log_every == 0:
            print(f"  ep {ep} it {i // a.batch_size} loss {loss / (i + len(j)):.4f}", flush=True)
    print(f"epoch {ep} loss {loss / len(X):.4f} ({time.time() - t0:.1f}s)", flush=True)
