"""A table holds the facts about every world at its defaults (random ones: ``default_rng(0)``), and at a large size.

The tests recompute every number with another solver and another form of the program; they agree to 1e-8.  Where no
general solver goes, they check the policy forwards and the bound that the multipliers prove backwards, to 1e-8 too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Numbers of the problem that learners see (costs scaled, rewards in [0, 1]).

    Attributes
    ----------
    value
        The best value of a policy that meets every budget.
    free_value
        The best value without constraints.
    slater_gap
        max over policies of the least room in any budget.
    multipliers
        What one more unit of each budget is worth.
    scenario_value
        The best value of a policy that is safe in every scenario; None where the world names none.
    """

    value: float
    free_value: float
    slater_gap: float
    multipliers: tuple[float, ...]
    scenario_value: float | None


FACTS: dict[str, Facts] = {
    "random_dirichlet": Facts(3.710632841073, 3.713000173121, 2.870146028459, (0.005796599928,), None),
    "correlated": Facts(3.049026488958, 3.912942836729, 1.103236806409, (0.782632491548,), None),
    "garnet": Facts(4.106352041902, 4.366380464556, 0.406415608382, (1.467656947338,), None),
    "streaming": Facts(3.253295788441, 4.606861647733, 5.0, (0.495189778961,), 2.922163108417),
    "inventory": Facts(6.665321527273, 7.0, 4.85401459854, (0.664242424242,), 6.64888457656),
    "queue": Facts(8.349647588941, 9.813130394896, 2.0, (0.715055870087, 0.6284736), 8.007072384458),
    "job_queue": Facts(7.0026199, 10.0, 0.82566077995, (1.8,), 7.002591801182),
    "grid": Facts(4.423944259361, 7.962820015715, 0.368098159509, (8.410832425279,), 3.539841313192),
    "mars_rover": Facts(0.46298985561, 0.706169399721, 0.12912482066, (3.387272981864,), 0.44477157705),
    "frozen_lake": Facts(0.79721593285, 0.85404044925, 0.988990931641, (0.044250012953,), 0.79033211609),
    "paradox": Facts(5.0, 10.0, 5.0, (1.0,), 5.0),
    "cyclic": Facts(2.0, 4.0, 3.0, (0.666666666667,), 2.0),
    "intrusion": Facts(7.371007327722, 8.0, 0.8, (0.652173913043,), 7.020315569231),
    "chain": Facts(7.455921064907, 10.526315789497, 3.636363636364, (0.628881819199,), 7.425552283234),
    "gathering": Facts(1.556818791115, 1.963420011040, 0.2, (1.285673591735,), 1.556763743108),
}


# Worlds of thousands of states: their settings, and what is known about them.
LARGE: dict[str, tuple[Mapping[str, Any], Facts]] = {
    "garnet": (
        {"n_states": 10_000, "horizon": 30, "branching": 3},
        Facts(22.3084421592, 23.4179319577, 4.24971371644, (0.562343110366,), None),
    ),
    "streaming": (
        {"n_levels": 10_000, "horizon": 50, "budget": 25.0},
        Facts(25.7259485837, 40.8246451772, 25.0, (0.874339152949,), 25.14314622044),
    ),
    "inventory": (
        {"capacity": 2000, "horizon": 30, "budget": 300.0, "max_order": 5},
        Facts(29.5376883445, 30.0, 0.149387511204, (39.9308041047,), 29.795245527129),
    ),
    "queue": (
        {"capacity": 1999, "horizon": 50, "service_budget": 20.0, "refusal_budget": 15.0},
        Facts(49.9113182444, 49.9971329665, 10.0, (0.00997324058829, 0.00994809574054), 49.884702577379),
    ),
    "grid": (
        {"size": 50, "horizon": 100, "budget": 3.0},
        Facts(24.3378653577, 52.288591293, 2.1897810219, (4.93117094522,), 21.230897483703),
    ),
    "mars_rover": (
        {"size": 50, "horizon": 120},
        Facts(0.093028302832, 0.356910675798, 0.128342245989, (0.699824800041,), 0.088962922244),
    ),
}
