# SPDX-License-Identifier: MIT
"""linear_fit: a model that all PEs fit to data of their own, in numpy.

    xiorun -n 2 python3 examples/python/linear_fit.py [STEPS]

The lesson: gradients lie in symmetric arrays, numpy computes in them, and one call in a stream adds them up, with the
same bits on every PE. A last look at the neighbour's weights, by a call of the host, proves that nobody has drifted away."""
import sys

import numpy as np

import xio


def main() -> int:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with xio.World() as world:
        ctx, team = world.context(), world.team()
        true = np.array([3.0, -2.0, 0.5, 1.0])
        rng = np.random.default_rng(world.rank)
        x = rng.normal(size=(64, 4))
        y = x @ true

        weights, gradient, total, seen = (world.zeros(4, "float64") for _ in range(4))
        w, g, sum_of_all = weights.numpy(), gradient.numpy(), total.numpy()
        for _ in range(steps):
            g[...] = x.T @ (x @ w - y) / len(y)
            ctx.reduce(team, total, gradient)
            ctx.synchronize()
            w -= 0.1 * sum_of_all / world.size

        world.barrier()
        ctx.host_get(seen, weights, (world.rank + 1) % world.size)
        same = bool((seen.numpy() == w).all())
        error = float(abs(w - true).max())
        world.barrier()
        print(f"PE {world.rank} of {world.size}: error {error:.1e} after {steps} steps, {'as' if same else 'NOT as'} its neighbour")
        del w, g, sum_of_all  # the heap is unmapped when no view is left
    return 0 if same and (steps < 100 or error < 1e-3) else 1


if __name__ == "__main__":
    sys.exit(main())
