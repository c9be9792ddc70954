"""What is the same test for every rival: the trivial world is solved, and what cannot be served is refused."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from omdpd.learners import (
    BVOPS,
    CPDPO,
    CVOPS,
    DOPE,
    OMDPD,
    OPDOP,
    PDBPS,
    RECOO,
    SOPS,
    UCCFH,
    UCPD,
    WCOPS,
    CautiousLP,
    ChenJainLuo,
    DOPEPlus,
    EpisodeSafe,
    FlexDOME,
    Germano,
    GhoshZhouShroff,
    GreedyLP,
    LekeufackJordan,
    LinearPotential,
    OptAug,
    OptCMDPBonus,
    OptDual,
    OptPessLP,
    OptPessPrimalDual,
    OptPrimalDual,
    PosteriorSampling,
    RegularizedPrimalDual,
    SinhaVaze,
    TripleQ,
    UOptRPGPD,
)
from omdpd.learners.needs import SafePolicy
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from tests.references.trivial_world import BEST, known_safe, late_averages

H, S, A, K, ROOM = 4, 3, 2, 50, 0.5
TOLD, UNTOLD = Setting(H, S, A, n_episodes=K), Setting(H, S, A)
TWO, REVEALED = Setting(H, S, A, 2, n_episodes=K), Setting(H, S, A, n_episodes=K, feedback="full")
FINE = SafePolicy(np.full((H, S, A), 1 / A), np.array([-0.25]))
UNSAFE = SafePolicy(np.full((H, S, A), 1 / A), np.array([0.25]))
MISFIT = SafePolicy(np.full((H, S, 3), 1 / 3), np.array([-0.25]))

# A learner with its feedback and how many episodes it has; its value, as a share of the best, and what it may exceed
# the budget by on average and in every episode, over the last quarter.
SOLVED = (
    (BVOPS(), "bandit", 400, 0.85, inf, 0.05),
    (CautiousLP(), "full", 400, 0.95, 0.1, inf),
    (DOPE(safe=known_safe()), "bandit", 400, 0.9, inf, 0.02),
    (DOPEPlus(safe=known_safe()), "bandit", 400, 0.9, inf, 0.02),
    (Germano(), "full", 400, 0.9, 0.1, inf),
    (GreedyLP(), "bandit", 400, 0.95, 0.1, inf),
    (LekeufackJordan(), "bandit", 800, 0.9, inf, 0.15),
    (LekeufackJordan(), "full", 800, 0.9, inf, 0.15),
    (LinearPotential(), "full", 400, 0.95, 0.1, inf),
    (OPDOP(room=1.2, primal_scale=4.0, dual_scale=2.0), "bandit", 2000, 0.9, 0.15, inf),
    (OptAug(), "bandit", 600, 0.95, inf, 0.1),
    (OptCMDPBonus(), "bandit", 600, 0.93, 0.15, inf),
    (OptDual(room=0.6), "bandit", 800, 0.9, 0.1, inf),
    (OptPessLP(safe=known_safe()), "bandit", 400, 0.9, inf, 0.02),
    (OptPessPrimalDual(room=1.2), "bandit", 2000, 0.95, 0.1, inf),
    (OptPrimalDual(room=0.6), "bandit", 1500, 0.9, 0.2, inf),
    (UCCFH(), "bandit", 400, 0.9, inf, 0.2),
    (ChenJainLuo(), "bandit", 400, 0.9, inf, 0.2),
    (PosteriorSampling(kappa=0.05), "bandit", 800, 0.9, 0.1, inf),
    (RECOO(), "bandit", 600, 0.95, inf, 0.05),
    (RECOO(), "full", 600, 0.95, inf, 0.05),
    (RegularizedPrimalDual(room=0.6), "bandit", 2000, 0.85, inf, 0.2),
    (SOPS(safe=known_safe()), "bandit", 400, 0.85, inf, 1e-6),
    (TripleQ(), "bandit", 2000, 0.9, 0.1, inf),
    (UCPD(), "full", 400, 0.9, 0.1, inf),
    (UOptRPGPD(), "bandit", 2000, 0.85, inf, 0.2),
    # These are slow: they have to beat the uniform policy clearly.
    (CPDPO(room=0.6), "bandit", 3000, 1.8 / BEST, inf, 0.3),
    (PDBPS(), "bandit", 3000, 1.8 / BEST, inf, inf),
)
# A learner, a setting that it cannot serve, and a word of the sentence that says why.
REFUSED = (
    (BVOPS(), REVEALED, "feedback must be 'bandit'"),
    (BVOPS(), UNTOLD, "set n_episodes"),
    (CautiousLP(), TOLD, "whole cost tables"),
    (CPDPO(), TOLD, "room"),
    (CPDPO(room=ROOM), UNTOLD, "n_episodes"),
    (CPDPO(room=ROOM), REVEALED, "'bandit'"),
    (CVOPS(room=ROOM), TWO, "one constraint"),
    (CVOPS(room=ROOM), UNTOLD, "n_episodes"),
    (DOPE(), TOLD, "must be given a strictly safe policy"),
    (DOPE(safe=FINE), REVEALED, "feedback must be 'bandit'"),
    (DOPEPlus(), TOLD, "must be given a strictly safe policy"),
    (DOPEPlus(safe=FINE), REVEALED, "feedback must be 'bandit'"),
    (EpisodeSafe(), TOLD, "set safe"),
    (FlexDOME(), UNTOLD, "room"),
    (FlexDOME(room=ROOM), REVEALED, "'bandit'"),
    (Germano(), TOLD, "whole cost tables"),
    (Germano(), replace(REVEALED, n_episodes=None), "set n_episodes"),
    (GhoshZhouShroff.hard(), TOLD, "room"),
    (GhoshZhouShroff.hard(room=ROOM), TWO, "one constraint"),
    (GhoshZhouShroff.average(room=ROOM), UNTOLD, "n_episodes"),
    (LekeufackJordan(), UNTOLD, "n_episodes"),
    (LinearPotential(), UNTOLD, "set n_episodes"),
    (OMDPD.theory(), UNTOLD, "set n_episodes"),
    (OPDOP(), TOLD, "set room"),
    (OPDOP(room=ROOM), UNTOLD, "set n_episodes"),
    (OPDOP(room=ROOM), TWO, "one constraint, but there are 2"),
    (OPDOP(room=ROOM), REVEALED, "feedback must be 'bandit'"),
    (OptAug(), REVEALED, "'bandit'"),
    (OptCMDPBonus(), REVEALED, "'bandit'"),
    (OptDual(), TOLD, "room"),
    (OptDual(room=ROOM), UNTOLD, "n_episodes"),
    (OptDual(room=ROOM), REVEALED, "'bandit'"),
    (OptPessLP(), TOLD, "must be given a strictly safe policy"),
    (OptPessLP(safe=FINE), REVEALED, "feedback must be 'bandit'"),
    (OptPessPrimalDual(), TOLD, "set room"),
    (OptPessPrimalDual(room=ROOM), REVEALED, "feedback must be 'bandit'"),
    (OptPrimalDual(), TOLD, "room"),
    (OptPrimalDual(room=ROOM), UNTOLD, "n_episodes"),
    (OptPrimalDual(room=ROOM), REVEALED, "'bandit'"),
    (PDBPS(), UNTOLD, "n_episodes"),
    (RegularizedPrimalDual(), TOLD, "room"),
    (RegularizedPrimalDual(room=ROOM), UNTOLD, "n_episodes"),
    (RegularizedPrimalDual(room=ROOM), REVEALED, "'bandit'"),
    (RegularizedPrimalDual(room=ROOM, eta_scale=100.0, tau_scale=1.0), TOLD, "eta tau"),
    (SinhaVaze(), UNTOLD, "set n_episodes"),
    (SOPS(), TOLD, "must be given a strictly safe policy"),
    (SOPS(safe=UNSAFE), TOLD, "costs 0.25 above its budget"),
    (SOPS(safe=MISFIT), TOLD, "the setting asks"),
    (SOPS(safe=FINE), REVEALED, "feedback must be 'bandit'"),
    (SOPS(safe=FINE), UNTOLD, "set n_episodes"),
    (TripleQ(), UNTOLD, "set n_episodes"),
    (TripleQ(), TWO, "one constraint, but there are 2"),
    (TripleQ(), REVEALED, "feedback must be 'bandit'"),
    (UCPD(), TOLD, "whole cost tables"),
    (UCPD(), replace(REVEALED, n_episodes=None), "set n_episodes"),
    (UOptRPGPD(), REVEALED, "'bandit'"),
    (UOptRPGPD(eta_power=0.4), UNTOLD, "eta_power"),
    (UOptRPGPD(tau_power=0.6), UNTOLD, "tau_power"),
)
# A setting that no learner of this class can have, and a word of the sentence.
IMPOSSIBLE = (
    (GreedyLP, {"kappa": -1.0}, "kappa is -1"),
    (PosteriorSampling, {"prior": 0.0}, "prior is 0"),
    (SinhaVaze, {"w0": 0.0}, "w0"),
    (WCOPS, {"power": 1.5}, r"power is 1\.5"),
)


def named(value):
    return type(value).__name__ if hasattr(value, "card") else None


@pytest.mark.parametrize(("learner", "kind", "episodes", "share", "most", "most_in_one"), SOLVED, ids=named)
def test_the_trivial_world_is_solved(learner, kind, episodes, share, most, most_in_one):
    value, excess, violation = late_averages(learner, kind, episodes)
    assert value > share * BEST
    assert excess < most
    assert violation < most_in_one


@pytest.mark.parametrize(("learner", "setting", "word"), REFUSED, ids=named)
def test_what_it_cannot_serve_is_refused_with_a_sentence(learner, setting, word):
    with pytest.raises(InvalidInputError, match=word):
        learner.init(setting)


@pytest.mark.parametrize(("kind", "settings", "word"), IMPOSSIBLE)
def test_an_impossible_setting_is_refused_by_name(kind, settings, word):
    with pytest.raises(InvalidInputError, match=word):
        kind(**settings).init(TOLD)
