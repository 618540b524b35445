#!/usr/bin/env Rscript
args <- commandArgs(trailingOnly = TRUE)
n <- as.integer(args[1]); B <- as.integer(args[2]); p <- as.integer(args[3])
set.seed(1)
X <- matrix(rnorm(n * p), n, p)
y <- X %*% seq_len(p) + rt(n, df = 3)
est <- matrix(NA_real_, B, p)
for (b in seq_len(B)) {
  i <- sample.int(n, replace = TRUE)
  est[b, ] <- .lm.fit(X[i, , drop = FALSE], y[i])$coefficients
  if (b %% 50 == 0) cat("replicate", b, "\n")
}
ci <- apply(est, 2, quantile, c(0.025, 0.975))
print(round(ci[, 1:min(5, p)], 3))
