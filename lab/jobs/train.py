"""Holds about 120 MB for a few seconds, like a small training loop."""
import argparse
import time

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()

weights = bytearray(110 << 20)
for i in range(0, len(weights), 4096):  # touch every page
    weights[i] = 1
for epoch in range(args.epochs):
    until = time.time() + 1
    total = 0
    while time.time() < until:
        total += sum(weights[i] for i in range(0, 4096, 64))
    print(f"epoch {epoch} loss {1 / (epoch + 1):.3f}", flush=True)
