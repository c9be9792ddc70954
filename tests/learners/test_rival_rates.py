"""Slow: the direction of every published rate, on random worlds whose constraint binds."""

import numpy as np
import pytest

from omdpd.learners import BVOPS, DOPE, Germano, OptPessLP, OptPessPrimalDual, TripleQ
from omdpd.play.judging import comparator
from omdpd.play.scene import with_known_facts
from omdpd.play.simulate import play_episode
from omdpd.solvers.compiled.flow import occupancy_of_policy
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.trivial_world import BEST, known_safe, late_averages

K = 4000
SEEDS = (11, 12, 13)


def growth(name, nature, settings):
    """Regret, strong and weak violation after K/4 and after K episodes, (2, 3), summed over the seeds."""
    sums = np.zeros((2, 3))
    for seed in SEEDS:
        cmdp = WORLDS["random_dirichlet"]().build(np.random.default_rng(seed))
        chosen = NATURES[nature]().build(cmdp, seed)
        best = comparator(cmdp, chosen, range(4 if chosen.repeats else 1)).value
        learner = with_known_facts(LEARNERS[name](**settings).build(), cmdp, chosen.feedback)
        state, rng = learner.init(cmdp.setting(K, chosen.feedback)), np.random.default_rng((seed, 1))
        regret = strong = weak = 0.0
        for k in range(K):
            policy = learner.policy(state)
            q = occupancy_of_policy(policy, cmdp.transition, cmdp.initial)
            round_ = chosen.draw(k, q)
            excess = float(np.tensordot(round_.cost, q, axes=3).max())
            regret += best - float((cmdp.reward * q).sum())
            strong, weak = strong + max(excess, 0.0), weak + excess
            state = learner.update(state, play_episode(cmdp, round_, policy, chosen.feedback, rng))
            if k + 1 == K // 4:
                sums[0] += regret, strong, max(weak, 0.0)
        sums[1] += regret, strong, max(weak, 0.0)
    return sums


# A constant amount per episode makes four times as much in four times as many episodes.
SUBLINEAR = 3.2
# A bonus of H times the half-widths is far wider than the box it stands for: a tenth of the default scale.  At the
# default the violation of RegularizedPrimalDual and UOptRPGPD is still linear at this K, of the other two barely less.
SMALL = {"transition_scale": 0.0005}
CASES = [
    ("OptCMDP", "noisy", {}, 1),
    ("OptCMDPBonus", "noisy", SMALL, 1),
    ("OptAug", "noisy", {}, 1),
    ("OptDual", "noisy", {}, 2),
    ("OptPrimalDual", "noisy", SMALL, 2),
    ("RegularizedPrimalDual", "noisy", SMALL, 1),
    ("UOptRPGPD", "noisy", SMALL, 1),
    ("CPDPO", "noisy", {}, 1),
    ("SinhaVaze", "pool", {}, 1),
    ("LekeufackJordan", "pool", {}, 1),
    ("RECOO", "fixed", {}, 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "nature", "settings", "which"), CASES)
def test_regret_and_the_violation_that_is_promised_to_be_sublinear_grow_like_that(name, nature, settings, which):
    sums = growth(name, nature, settings)
    assert sums[1, which] < SUBLINEAR * max(sums[0, which], 1.0), sums
    assert sums[1, 0] < SUBLINEAR * max(sums[0, 0], 1.0), sums


# In the trivial world: a learner, its feedback, two numbers of episodes, and what is left of its loss (or the least
# excess that counts).
LOSSES = (
    (BVOPS(), 200, 6400, 1.0),
    (DOPE(safe=known_safe()), 100, 3200, 0.5),
    (OptPessLP(safe=known_safe()), 100, 3200, 0.5),
)
EXCESSES = (
    (Germano(), "full", 400, 6400, 0.02),
    (OptPessPrimalDual(room=1.2), "bandit", 400, 12800, 0.0),
    (TripleQ(restart=True), "bandit", 2000, 16000, 0.0),
)


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "few", "many", "share"), LOSSES)
def test_regret_per_episode_falls_with_the_number_of_episodes(learner, few, many, share):
    losses = [BEST - late_averages(learner, "bandit", episodes)[0] for episodes in (few, many)]
    assert losses[1] < share * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "kind", "few", "many", "least"), EXCESSES)
def test_weak_violation_per_episode_falls_with_the_number_of_episodes(learner, kind, few, many, least):
    excess = [late_averages(learner, kind, episodes)[1] for episodes in (few, many)]
    assert excess[1] < max(excess[0], least)
