"""One episode of ProximalOMDPD: steps 1 to 6 of the docstring of `learners.proximal`, in their order.

    look_back    3  a revealed table is put into the memory
                 4  V_i += [d_i.q]^+
                 5  q_hat = argmin of the surrogate f that was met, and 6  a smaller eta where f was a surprise
                    counts and evidence of the episode
    plan_ahead   1  beliefs: r~ with its bonus, d with its margin, p~
                 2  q = argmin of the surrogate m that is predicted; its policy is played next

Of beliefs in tables it is `on_tables` that is asked, all of it compiled (`learn`).  Other beliefs have functions of the
same names in `learners.proximal_loop`, and Python runs this source with those.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs.rules import episodes_for, is_asked, is_exceeded, margin_is_useless, margin_share
from omdpd.jit.decorators import glue, rule
from omdpd.learners.standard.believing import Dials, believe, has_overflowed, novelty_with
from omdpd.learners.standard.on_tables import (
    Met,
    choose,
    count,
    distance_of,
    flow_of,
    hinges_met,
    law_moved,
    law_of,
    loss_of,
    meets_tables,
    mirror_step,
    remember,
)
from omdpd.learners.standard.state import (
    BOUND,
    CAPPED,
    DRIFT,
    ETA,
    HINGES,
    IGNORED,
    INEXACTNESS,
    LOG,
    LOSS,
    NOVELTY,
    PLANNED,
    REGRET,
    REWARD_SUM,
    SATURATIONS,
    SHARE,
    STARTED,
    VIOLATION,
    WEIGHT,
    K,
    Parts,
    Sizes,
)
from omdpd.learners.standard.weights import (
    SHORTER,
    SHORTEST,
    Slope,
    add_violation,
    certified,
    fair_price,
    growth_rate,
    heaviest,
    inexactness,
    margin_deficit,
    potential_at,
    slack,
    slope_of,
    slower_step,
    surprise_of,
    surrogate_bound,
    weight_at,
)
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.entries import copy_vector
from omdpd.solvers.compiled.newton.certificate import FAILED, add_solve
from omdpd.solvers.compiled.products import dot, largest_dot


@glue
def look_back(d: Dials, z: Sizes, s: Parts, met: Met, tables: Floats, prices: Floats) -> None:
    """Steps 3 to 6: what the episode says of the plan, of the tables and of the step size; then counts and evidence."""
    a, n, x = s.account, int(s.account[HINGES]), flow_of(s, s.q)
    write_prices(d, z, s, x, prices)
    useless, novelty, changed = margin_is_useless(has_overflowed(d, s), a[NOVELTY]), a[NOVELTY], False
    share = margin_share(a[SHARE], is_exceeded(largest_dot(s.tables[:n], x), z.H), not d.bandit)
    if not d.bandit:  # step 3
        novelty = novelty_with(s, tables)
        changed = remember(d, z, s, tables)
    a[K] += 1.0
    before = s.V.copy()
    worst, ignored = add_violation(s.V, s.cost if d.bandit else tables, x, z.H)  # step 4
    a[PLANNED], a[IGNORED], a[REWARD_SUM] = a[PLANNED] + worst, a[IGNORED] + ignored, a[REWARD_SUM] + dot(s.reward, x)
    phi = potential_before(d, z, s, a[K])
    if not d.lagged:
        changed = write_weights(s, phi) or changed
    if changed:  # steps 5 and 6
        be_surprised(d, z, s, useless, before, x)
    else:
        a[DRIFT] += margin_deficit(a[SHARE], charge(s, before), penalty(s.tables, s.hinge_weights, n, x))
        copy_vector(s.q, s.q_hat)
        copy_vector(s.multipliers, s.start)
    a[SATURATIONS] += reaches(s.V, phi.kink)
    a[STARTED], a[SHARE], a[NOVELTY] = 1.0, share, novelty
    copy_vector(s.q, s.plan)
    count(z, s, met)


@glue
def be_surprised(d: Dials, z: Sizes, s: Parts, useless: bool, before: Floats, x: Floats) -> None:
    """Steps 5 and 6: q_hat from the surrogate f that was met, and a smaller step where f was not the prediction m.

    With patience a surprise slows the steps only after more tables were revealed than are remembered: a finite pool
    surprises a finite number of times.
    """
    a, eta, m, q_hat = s.account, s.account[ETA], int(s.account[HINGES]), np.empty(s.q.shape)
    copy_vector(s.multipliers, s.start)
    tables, weights, warm = hinges_met(d, z, s, useless)
    gap, scale, steps, status, residual = mirror_step(z, s, eta, warm, tables, weights, q_hat)
    n, x_hat = int(a[HINGES]), flow_of(s, q_hat)
    paid = penalty(tables, weights, n, x)
    at_plan = paid - penalty(s.tables, s.hinge_weights, m, x)
    at_best = penalty(tables, weights, n, x_hat) - penalty(s.tables, s.hinge_weights, m, x_hat)
    moved = distance_of(s, q_hat, s.q) + distance_of(s, s.q, s.q_hat)
    surprise = surprise_of(at_plan, at_best, moved, eta)
    charged = not d.patient or has_overflowed(d, s)
    a[DRIFT] += margin_deficit(a[SHARE], charge(s, before), paid) + (0.0 if charged else surprise)
    a[INEXACTNESS] += inexactness(gap, z.H, eta)
    a[ETA] = slower_step(eta, surprise if charged else 0.0, z.H, d.c_prime)
    add_solve(a[LOG:], gap, scale, steps, status, residual)
    copy_vector(q_hat, s.q_hat)
    copy_vector(s.multipliers, s.start)


@glue
def plan_ahead(d: Dials, z: Sizes, s: Parts, prices: Floats) -> None:
    """Steps 1 and 2: the next beliefs, and the plan that is best under them near q_hat."""
    a, eta, phi = s.account, s.account[ETA], potential_before(d, z, s, s.account[K] + 1.0)
    write_weights(s, phi)
    before = law_of(s)
    warm = believe(d, z, s, prices)
    shortened = 1.0
    while True:
        gap, scale, steps, status, residual = mirror_step(z, s, eta / shortened, warm, s.tables, s.hinge_weights, s.q)
        if status != FAILED or shortened >= SHORTEST:
            break
        # Prices in the thousands make a surrogate of that size: the step is then a linear program in all but name, at
        # whose degenerate vertices an interior-point method may come to a halt; a shorter step is a step too.
        shortened *= SHORTER
    for j in range(int(a[HINGES])):
        s.multipliers[j] *= shortened
    add_solve(a[LOG:], gap, scale, steps, status, residual)
    a[INEXACTNESS] += inexactness(gap, z.H, eta / shortened)
    # A step of length eta/c satisfies its inequality with c/eta, of which only 1/eta telescopes.
    moved = law_moved(z, s, before) if a[STARTED] else 0.0
    a[DRIFT] += (moved + (shortened - 1.0) * z.H) / eta
    certify(d, z, s, phi)
    choose(z, s)
    if is_asked(a[K]):
        a[LOSS] = loss_of(d, z, s)


@glue
def write_prices(d: Dials, z: Sizes, s: Parts, x: Floats, prices: Floats) -> None:
    """What the plan would pay for a little more of each cost, as the next bonus sees it."""
    total = 0.0
    for j in range(prices.size):
        prices[j] = s.multipliers[j] / s.account[ETA]
        total += prices[j]
    factor = fair_price(total, d.w0, not d.bandit and total > d.w0 and meets_tables(z, s, x))
    for j in range(prices.size):
        prices[j] *= factor


@glue
def potential_before(d: Dials, z: Sizes, s: Parts, k: float) -> Slope:
    """The potential before one-based episode k."""
    return slope_of(d.w0, growth_rate(d.gamma_scale, z.I, z.H, episodes_for(d.episodes, k)), d.w_max)


@glue
def write_weights(s: Parts, phi: Slope) -> bool:
    """w = Phi'(V) as far as a step takes it; whether it is another than before."""
    a, changed = s.account, False
    a[WEIGHT] = 0.0
    for i in range(s.V.size):
        wanted = weight_at(phi, s.V[i])
        w = min(wanted, heaviest(a[ETA]))
        if w != wanted:
            a[CAPPED] = 1.0
        changed = changed or w != s.weights[i]
        s.weights[i] = w
        a[WEIGHT] = max(a[WEIGHT], w)
    return changed


@glue
def charge(s: Parts, before: Floats) -> float:
    """sum_i w_i x_i, where V grew by x."""
    total = 0.0
    for i in range(s.V.size):
        total += s.weights[i] * (s.V[i] - before[i])
    return total


@glue
def certify(d: Dials, z: Sizes, s: Parts, phi: Slope) -> None:
    """What the run-time bound says of regret and violation; not a number once a weight was cut."""
    a, total = s.account, 0.0
    for i in range(s.V.size):
        total += potential_at(phi, s.V[i])
    a[BOUND], a[REGRET], a[VIOLATION] = np.nan, np.nan, np.nan
    if not a[CAPPED]:
        a[BOUND] = surrogate_bound(z.H, d.c_prime, a[ETA], a[INEXACTNESS], a[DRIFT])
        a[REGRET], a[VIOLATION] = certified(phi, slack(phi, z.H, d.lagged), a[BOUND], total, a[REWARD_SUM])


@rule
def penalty(tables: Floats, weights: Floats, n: int, q: Floats) -> float:
    """sum_j w_j [d_j.q]^+ over the first n tables."""
    total = 0.0
    for j in range(n):
        total += weights[j] * max(dot(tables[j], q), 0.0)
    return total


@glue
def reaches(V: Floats, kink: float) -> float:
    """1 if some slope of the potential sits at its cap, else 0."""
    for i in range(V.size):
        if V[i] >= kink:
            return 1.0
    return 0.0
