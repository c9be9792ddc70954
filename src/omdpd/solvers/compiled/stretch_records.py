"""What `stretch` takes and gives: the truth, the learner's settings, its past and its plans, sums, and columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from omdpd.problem.arrays import Floats, Integers


class Truth(NamedTuple):
    """What is played: the world, its tables (n, I, H, S, A), and of every episode which one it meets.

    A choice below zero is the costliest table for the policy in play, and is written; `uniforms` (B, (3 + I) H) are the
    random numbers of every episode; `novel` (n,) is how far a table is from those remembered, not a number if it is
    not among them, and `seen_cost` (I, H, S, A) the truth of an estimated cost (no rows where costs are revealed).
    """

    transition: Floats
    initial: Floats
    reward: Floats
    tables: Floats
    choices: Integers
    novel: Floats
    uniforms: Floats
    seen_cost: Floats
    drawn_rewards: bool
    drawn_costs: bool


class Dials(NamedTuple):
    """The learner's settings, and the constants of its rules by the names that they have there."""

    bandit: bool
    stationary: bool
    exploration: float
    z: float
    revealed_z: float
    eta: float
    w0: float
    beta: float
    kink: float
    w_max: float
    heaviest: float
    first_bound: float
    slack: float
    noise: float
    tolerance: float
    exceeded: float
    fall: float
    growth: float
    least: float
    descent: float
    lowest: float
    forget: float
    most_novel: float
    lawful: float
    shorter: float
    shortest: float


class Past(NamedTuple):
    """Counts and evidence: the arrays of `Counts` and `Evidence`, changed in place."""

    visits: Floats
    transitions: Floats
    reward_sum: Floats
    cost_sum: Floats
    reward_squares: Floats
    cost_squares: Floats
    kernel_score: Floats
    reward_score: Floats
    cost_score: Floats


class Plans(NamedTuple):
    """What an episode starts from and what it leaves, changed in place.

    The plan `q`, the one before it `q_hat`, r~, d~ with margins (`lifted`) and without (`cost`), the kernel; the hinges
    (`tables`, `weights`) of the plan with their `multipliers` and where those `start`ed; weights `each` (I,), and `V`.
    `kept` are the remembered tables as they are, and `owner` the constraint of each (none where costs are estimated);
    `mu` (S,) is the initial law that the learner was told.
    """

    q: Floats
    q_hat: Floats
    reward: Floats
    lifted: Floats
    cost: Floats
    kernel: Floats
    tables: Floats
    weights: Floats
    multipliers: Floats
    start: Floats
    each: Floats
    V: Floats
    kept: Floats
    owner: Integers
    mu: Floats


class Account(NamedTuple):
    """The sums of a state and of a run; `share`, `novelty` of its caution; how many episodes were played."""

    played: int
    share: float
    novelty: float
    overflowed: bool
    reward_sum: float
    inexactness: float
    drift: float
    ignored: float
    planned_violation: float
    capped: bool
    saturations: int
    solves: int
    failures: int
    iterations: int
    max_gap: float
    max_residual: float


class Columns(NamedTuple):
    """What is told of every episode, (B,) each but `excess` (B, I), and the sums of a run.

    `value_sum` and `violation_sum` have one entry more, the first of which is the sum before; `excess_sum` (I,) and
    `occupancy_sum` (H, S, A) are changed in place.
    """

    value: Floats
    excess: Floats
    value_sum: Floats
    violation_sum: Floats
    weight: Floats
    regret: Floats
    violation: Floats
    optimism: Any
    planned_value: Floats
    planned_violation: Floats
    excess_sum: Floats
    occupancy_sum: Floats
