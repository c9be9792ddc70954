"""Random mirror steps, most of them degenerate, and what the solvers make of them.

    python -m benchmarks.fuzz N [--seed I] [--region box|kernel|graph|both] [--divergence euclid|kl|both] [--tol T]
        [--mild]

Problem i of a region is a function of (seed + i, region), so a failure is reproduced by its number.  With `--mild` all
numbers but those of the boxes are moderate: weights to 1e4, radii from 1e-12, some entries far smaller.  `draw` and
`draw_mild` give plain arrays: tests use them too.  A solve is *silent* when it claims more than `check` can confirm:
never acceptable.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

from omdpd.solvers.compiled.boxes import tighten
from omdpd.solvers.compiled.flow import flow_residual, occupancy_of_policy


class Problem(NamedTuple):
    """One mirror step; `label` says how it was drawn."""

    c: np.ndarray
    reference: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mu: np.ndarray
    d: np.ndarray
    W: np.ndarray
    kl: bool
    label: dict


class Outcome(NamedTuple):
    """What a solver returned, in one form for all regions."""

    q: np.ndarray
    p: np.ndarray
    xi: np.ndarray
    gap: float
    scale: float
    iterations: int
    status: int


RADII = ("zero", "simplex", "counts", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-2", "mixed", "half-known")
HINGES = (
    "none",
    "random",
    "duplicate",
    "parallel",
    "opposite",
    "zero",
    "sparse",
    "positive",
    "negative",
    "kink",
    "rank-two",
)


def draw(seed: int, region: str = "box", kl: bool = False) -> Problem:
    """A problem of region "box" or "kernel" (every box a point)."""
    rng = np.random.default_rng([seed, 1 if region == "kernel" else 0, int(kl)])
    S, A, H = (int(n) for n in (rng.integers(1, 9), rng.integers(1, 5), rng.integers(1, 7)))
    law = draw_law(rng, S, A, H)
    radius = "zero" if region == "kernel" else str(rng.choice(RADII))
    lower, upper = draw_box(rng, law, radius)
    mu = draw_initial(rng, S)
    reference, kind = draw_reference(rng, law, mu, A)
    eta = float(10.0 ** rng.uniform(-8, 8)) if rng.random() < 0.3 else float(10.0 ** rng.uniform(-3, 1))
    loss = rng.uniform(-1, 1, (H, S, A)) * (rng.random() > 0.05)
    hinges = str(rng.choice(HINGES))
    d, W = draw_hinges(rng, hinges, reference, eta)
    if kl:
        # Prices are exponents here: e^-1000 is no longer a number.
        eta, W = min(eta, 10.0), np.minimum(W, 100.0)
        reference = 0.99 * reference + 0.01 / (S * A)
    c = (np.log(reference) if kl else reference) - eta * loss
    label = {"S": S, "A": A, "H": H, "radius": radius, "reference": kind, "eta": eta, "hinges": hinges, "m": len(W)}
    return Problem(c, reference, lower, upper, mu, d, W, kl, label)


def draw_mild(seed: int, kl: bool = False) -> Problem:
    """A problem over boxes of radii 1e-12 to 1, with weights to 1e4 (100 for KL) and steps of ordinary length."""
    rng = np.random.default_rng([seed, 2, int(kl)])
    S, A, H = (int(n) for n in (rng.integers(2, 9), rng.integers(1, 5), rng.integers(2, 7)))
    law, entries = shrink_law(rng, draw_law(rng, S, A, H))
    lower, upper, radius = draw_narrow_box(rng, law)
    mu = draw_initial(rng, S)
    reference, kind = draw_reference(rng, law, mu, A)
    eta = float(10.0 ** rng.uniform(-3, 1))
    loss = rng.uniform(-1, 1, (H, S, A))
    hinges = str(rng.choice(HINGES))
    d, _ = draw_hinges(rng, hinges, reference, eta)
    W = 10.0 ** rng.uniform(-2, 2 if kl else 4, len(d))
    if kl:
        reference = 0.99 * reference + 0.01 / (S * A)
    c = (np.log(reference) if kl else reference) - eta * loss
    label = {"S": S, "A": A, "H": H, "law": entries, "radius": radius, "reference": kind, "eta": eta, "hinges": hinges}
    return Problem(c, reference, lower, upper, mu, d, W, kl, label)


def shrink_law(rng: np.random.Generator, law: np.ndarray) -> tuple[np.ndarray, str]:
    """Kernels as they are, or with next states that have no probability, or one of 1e-10 down to 1e-20."""
    kind = str(rng.choice(["plain", "dropped", "tiny"]))
    chosen = rng.random(law.shape[-1]) < 0.4
    if kind == "dropped":
        law = np.where(chosen, 0.0, law)
    elif kind == "tiny":
        law = np.where(chosen, law * 10.0 ** rng.uniform(-20, -10, law.shape), law)
    law[..., 0] += law.sum(-1) < 1e-6
    return law / law.sum(-1, keepdims=True), kind


def draw_narrow_box(rng: np.random.Generator, law: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Tight bounds at distances from 1e-12 on: one for all, one per row, one per entry, for some, or relative."""
    kind = str(rng.choice(["one", "rows", "entries", "some", "relative"]))
    if kind == "rows":
        width = 10.0 ** rng.uniform(-12, 0, law.shape[:3])[..., None] * rng.random(law.shape)
    elif kind == "entries":
        width = 10.0 ** rng.uniform(-12, 0, law.shape)
    else:
        width = np.full(law.shape, 10.0 ** rng.uniform(-12, 0))
    if kind == "some":
        width *= rng.random(law.shape) < 0.5
    elif kind == "relative":
        width = law * 10.0 ** rng.uniform(-3, 0)
    lower, upper = tighten(np.maximum(law - width, 0.0), np.minimum(law + width, 1.0))
    return lower, upper, kind


def draw_law(rng: np.random.Generator, S: int, A: int, H: int) -> np.ndarray:
    """Kernels: Dirichlet, sparse supports, deterministic, or with states that nothing leads to."""
    law = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    kind = rng.integers(0, 4)
    if kind == 1:
        law = law * (rng.random(law.shape) < 0.5)
        law[..., 0] += law.sum(-1) == 0
    elif kind == 2:
        law = np.eye(S)[rng.integers(0, S, (H, S, A))]
    elif kind == 3 and S > 1:
        law[..., rng.integers(0, S)] = 0.0
    return law / law.sum(-1, keepdims=True)


def draw_box(rng: np.random.Generator, law: np.ndarray, radius: str) -> tuple[np.ndarray, np.ndarray]:
    """Tight bounds around the kernels."""
    shape = law.shape
    if radius == "zero":
        return law.copy(), law.copy()
    if radius == "simplex":
        width = np.ones(shape)
    elif radius == "counts":
        visits = rng.integers(0, 3000, shape[:3])[..., None] * (rng.random(shape[:3])[..., None] > 0.2)
        log = 15.0 * float(rng.choice([0.005, 1.0]))
        width = 2 * np.sqrt(law * (1 - law) * log / np.maximum(visits, 1)) + 14 / 3 * log / np.maximum(visits, 1)
        width = np.where(visits == 0, 1.0, width)
    elif radius == "mixed":
        width = np.choose(rng.integers(0, 4, shape[:3])[..., None], [0.0, 1.0, 0.1, 0.01]) * rng.random(shape)
    elif radius == "half-known":
        width = rng.uniform(0, 0.3, shape) * (rng.random(shape) < 0.5)
    else:
        width = float(radius) * rng.uniform(0.5, 1.5, shape)
    return tighten(np.maximum(law - width, 0.0), np.minimum(law + width, 1.0))


def draw_initial(rng: np.random.Generator, S: int) -> np.ndarray:
    """Initial laws: interior, one-hot, with zeros, with tiny masses."""
    mu = rng.dirichlet(np.ones(S))
    kind = rng.integers(0, 4)
    if kind == 1:
        mu = np.eye(S)[rng.integers(0, S)]
    elif kind == 2:
        mu = mu * (rng.random(S) < 0.6)
        mu[0] += mu.sum() == 0
    elif kind == 3:
        mu = np.where(rng.random(S) < 0.4, 1e-12, mu)
    return mu / mu.sum()


def draw_reference(rng: np.random.Generator, law: np.ndarray, mu: np.ndarray, A: int) -> tuple[np.ndarray, str]:
    """References: of a random or a deterministic policy, of another kernel, or no occupancy at all."""
    H, S = law.shape[:2]
    kind = str(rng.choice(["interior", "boundary", "elsewhere", "arbitrary"]))
    if kind == "arbitrary":
        return rng.dirichlet(np.full(S * A, 0.3), size=H).reshape(H, S, A), kind
    policy = rng.dirichlet(np.ones(A), size=(H, S))
    if kind == "boundary":
        policy = np.eye(A)[rng.integers(0, A, (H, S))]
    kernel = rng.dirichlet(np.ones(S), size=law.shape[:3]) if kind == "elsewhere" else law
    return occupancy_of_policy(policy, kernel, mu), kind


def draw_hinges(
    rng: np.random.Generator, kind: str, reference: np.ndarray, eta: float
) -> tuple[np.ndarray, np.ndarray]:
    """d and W: weights of any size, in the unit of the step, or (one time in four) moderate."""
    shape = reference.shape
    m = 0 if kind == "none" else int(rng.choice([1, 2, 3, 8]))
    d = rng.uniform(-1, 1, (m, *shape))
    if kind in ("duplicate", "parallel", "opposite") and m > 1:
        factor = {"duplicate": 1.0, "parallel": float(rng.uniform(0.1, 10)), "opposite": -1.0}[kind]
        d[1:] = d[0] * factor
    elif kind == "zero":
        d[:1] = 0.0
    elif kind == "sparse":
        d *= rng.random(d.shape) < 0.1
    elif kind in ("positive", "negative"):
        d = np.abs(d) * (1 if kind == "positive" else -1)
    elif kind == "kink":
        d -= (d * reference).sum((1, 2, 3), keepdims=True) / shape[0]
    elif kind == "rank-two" and m > 2:
        d = np.tensordot(rng.normal(size=(m, 2)), d[:2], 1)
    if rng.random() < 0.25:
        return d, 10.0 ** rng.uniform(-2, 3, m)
    W = eta * 10.0 ** rng.uniform(-1, 1, m) if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 6, m)
    W = np.minimum(W, 1e6) * (rng.random(m) > 0.05)
    return d, W


def run(problem: Problem, region: str, tol: float) -> Outcome:
    """Solve with the solver of the region."""
    c, reference, lower, upper, mu, d, W, kl, _ = problem
    if region == "kernel" and not kl:
        from benchmarks.solvers.single import solve_single

        q, _, xi, gap, scale, iterations, status = solve_single(c, reference, lower, mu, d, W, tol)
        return Outcome(q, lower, xi, gap, scale, int(iterations), int(status))
    from omdpd.solvers.compiled.box_step.solve import solve_box

    q, p, _, xi, gap, scale, iterations, status = solve_box(c, reference, lower, upper, mu, d, W, kl, tol)
    return Outcome(q, p, xi, gap, scale, int(iterations), int(status))


def objective(problem: Problem, q: np.ndarray) -> float:
    """The mirror step's objective, for comparing points (in extended precision: W may be large)."""
    q = q.astype(np.longdouble)
    if problem.kl:
        # Per entry q log q - q - q c, continuous at q = 0.
        value = np.sum(np.where(q > 0, q * (np.log(np.where(q > 0, q, 1)) - 1 - problem.c), 0))
    else:
        value = 0.5 * np.sum((q - problem.c) ** 2)
    return value + problem.W @ np.maximum((problem.d * q).sum((1, 2, 3)), 0)


def check(problem: Problem, outcome: Outcome, tol: float) -> list[str]:
    """What is wrong with an outcome beyond what its status admits."""
    wrong = []
    numbers = (outcome.q, outcome.p, outcome.xi, np.array([outcome.gap, outcome.scale]))
    if not all(np.isfinite(x).all() for x in numbers):
        return ["not finite"]
    if flow_residual(outcome.q, outcome.p, problem.mu) > 1e-13:
        wrong.append("flow")
    p, low, high = outcome.p[:-1], problem.lower[:-1], problem.upper[:-1]
    if (p < low - 1e-15).any() or (p > high + 1e-15).any() or (np.abs(p.sum(-1) - 1) > 1e-12).any():
        wrong.append("kernel outside its box")
    if outcome.gap < 0:
        wrong.append("negative gap")
    # No other point we know may be better than the gap admits.  Both are feasible to one unit in the last place, which
    # values of size `scale` multiply.
    rival = occupancy_of_policy(np.full(problem.c.shape, 1 / problem.c.shape[2]), outcome.p, problem.mu)
    rounding = 1e-13 * (1 + abs(float(objective(problem, rival)))) + np.finfo(float).eps * outcome.scale
    slack = outcome.gap + rounding
    if float(objective(problem, outcome.q) - objective(problem, rival)) > slack:
        wrong.append("a known point is better")
    relative = outcome.gap / outcome.scale
    expected = 0 if relative <= tol else 1 if relative <= 1e-8 else 2
    if outcome.status != expected:
        wrong.append("status")
    return wrong


def attempt(i: int, region: str, kl: bool, tol: float, mild: bool) -> tuple[Any, Any, list[str]]:
    """Problem number i of a region, what the solver made of it, and what is wrong with that."""
    if region == "graph":
        from benchmarks.fuzz_graphs import check_on_graph, draw_on_graph, run_on_graph

        on_graph = draw_on_graph(i)
        found = run_on_graph(on_graph, tol)
        return on_graph, found, check_on_graph(on_graph, found, tol)
    problem = draw_mild(i, kl) if mild else draw(i, region, kl)
    outcome = run(problem, region, tol)
    return problem, outcome, check(problem, outcome, tol)


def fuzz(n: int, seed: int, region: str, kl: bool, tol: float, mild: bool = False) -> dict:
    """Run n problems; print the failures and a summary."""
    counts = {"solved": 0, "almost": 0, "failed": 0, "silent": 0}
    iterations, worst, start = [], 0.0, time.perf_counter()
    for i in range(seed, seed + n):
        problem, outcome, wrong = attempt(i, region, kl, tol, mild)
        relative = outcome.gap / outcome.scale
        worst = max(worst, relative)
        counts[("solved", "almost", "failed")[outcome.status]] += 1
        counts["silent"] += bool(wrong)
        iterations.append(outcome.steps if region == "graph" else outcome.iterations)
        if outcome.status == 2 or wrong:
            print(f"  {i}: {wrong or 'failed'}, relative gap {relative:.1e}, {problem.label}")
    elapsed = time.perf_counter() - start
    name = f"{'mild ' if mild else ''}{region} {'kl' if kl else 'euclid'}"
    print(
        f"{name}: {n} problems from {seed}, {counts}, worst relative gap {worst:.1e}, "
        f"iterations mean {np.mean(iterations):.1f} p99 {np.percentile(iterations, 99):.0f} "
        f"max {max(iterations)}, {elapsed:.1f} s"
    )
    return counts


def main() -> int:
    """Command line; exit code 1 if anything was silent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--region", choices=["box", "kernel", "graph", "both"], default="both")
    parser.add_argument("--divergence", choices=["euclid", "kl", "both"], default="euclid")
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--mild", action="store_true", help="boxes only, with moderate numbers and narrow entries")
    options = parser.parse_args()
    silent = 0
    regions = ("box", "kernel") if options.region == "both" else (options.region,)
    names = ("euclid", "kl") if options.divergence == "both" else (options.divergence,)
    for region in ("box",) if options.mild else regions:
        for name in ("euclid",) if region == "graph" else names:
            silent += fuzz(options.n, options.seed, region, name == "kl", options.tol, options.mild)["silent"]
    return int(silent > 0)


if __name__ == "__main__":
    raise SystemExit(main())
