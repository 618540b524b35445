% low rank denoising of an image stack
n = str2double(getenv('NPIX')); reps = str2double(getenv('REPS')); nimg = 8;
rand('seed', 1); randn('seed', 1);
stack = zeros(n, n, nimg);
for k = 1:nimg
  [x, y] = meshgrid(linspace(0, 1, n));
  stack(:, :, k) = sin(6 * x * k) .* cos(5 * y) + 0.2 * randn(n);
end
for r = 1:reps
  A = stack(:, :, mod(r, nimg) + 1);
  [U, S, V] = svd(A, 'econ');
  s = diag(S);
  rk = sum(s > 0.1 * s(1));
  B = U(:, 1:rk) * S(1:rk, 1:rk) * V(:, 1:rk)';
  printf('image %d rank %d err %.4f\n', r, rk, norm(A - B, 'fro') / norm(A, 'fro'));
end
