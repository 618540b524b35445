import argparse
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

ap = argparse.ArgumentParser()
ap.add_argument("-n", type=int, required=True, help="interior points per side")
ap.add_argument("--tol", type=float, default=1e-6)
ap.add_argument("--maxiter", type=int, default=200)
ap.add_argument("--preconditioner", choices=["none", "jacobi", "ilu"], default="none")
a = ap.parse_args()
n = a.n
T = sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n), format="csr")
I = sp.identity(n, format="csr")
A = (sp.kron(T, I) + sp.kron(I, T)).tocsr()
b = np.ones(n * n) / (n + 1) ** 2
M = None
if a.preconditioner == "jacobi":
    M = sp.diags(1.0 / A.diagonal())
elif a.preconditioner == "ilu":
    ilu = spla.spilu(A.tocsc(), drop_tol=1e-3, fill_factor=4)
    M = spla.LinearOperator(A.shape, ilu.solve)
it = [0]
def cb(_):
    it[0] += 1
x, info = spla.cg(A, b, tol=a.tol, maxiter=a.maxiter, M=M, callback=cb)
print(f"n={n} unknowns={n * n} iters={it[0]} info={info} max={x.max():.5f} res={np.linalg.norm(b - A @ x):.2e}")
