"""What every learner of the table keeps to, under every kind of feedback it takes."""

import numpy as np
import pytest

from omdpd.learners import AVERAGE_LEARNERS
from omdpd.learners.protocol import Card
from omdpd.play.scene import with_known_facts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP
from omdpd.testing import LEARNER_RULES
from omdpd.testing.learners import LearnerCase
from tests.references.instances import bandit, forward, random_cmdp, revealed
from tests.references.named import LEARNERS

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 30


def world(n_constraints=I):
    """A world with room below its budgets, for learners that must know of some."""
    return random_cmdp(np.random.default_rng((n_constraints, 1)), H, S, A, n_constraints, budget=0.4)


def told(name, kind, cmdp):
    """The learner, told what it must know of the world; None where it refuses this world."""
    try:
        learner = with_known_facts(LEARNERS[name]().build(), cmdp, kind)
        learner.init(cmdp.setting(K, kind))
    except InvalidInputError:
        return None
    return learner


def constraints_of(name, kind):
    """As many constraints as the learner is stated for: several, or one; 0 if it refuses both."""
    return next((n for n in (I, 1) if told(name, kind, world(n)) is not None), 0)


SIZES = {(name, kind): constraints_of(name, kind) for name in LEARNERS for kind in ("bandit", "full")}
CASES = [case for case, n_constraints in SIZES.items() if n_constraints]


def once_per_class():
    """The cases; where another preset of the same class keeps the same kind of state, `make test-all` has this one."""
    seen = set()
    for name, kind in CASES:
        learner = told(name, kind, world(SIZES[name, kind]))
        made = type(learner), type(learner.init(world(SIZES[name, kind]).setting(K, kind))), kind
        yield pytest.param(name, kind, marks=[pytest.mark.whole] if made in seen else [])
        seen.add(made)


@pytest.mark.parametrize("rule", LEARNER_RULES)
@pytest.mark.parametrize(("name", "kind"), [case for case in once_per_class() if case.values != ("Oracle", "full")])
def test_a_learner_keeps_to_the_rules(name, kind, rule):
    """Those of `omdpd.testing`.  (The oracle has to be given the tables that are revealed.)"""
    LEARNER_RULES[rule](LearnerCase(LEARNERS[name]().build(), kind))


@pytest.mark.parametrize("rule", LEARNER_RULES)
@pytest.mark.parametrize("name", AVERAGE_LEARNERS)
def test_a_learner_of_averages_keeps_to_the_rules_in_windows(name, rule):
    LEARNER_RULES[rule](LearnerCase(AVERAGE_LEARNERS[name](), "bandit"))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_a_card_and_its_spec_a_line(name):
    card = LEARNERS[name]().build().card
    assert isinstance(card, Card)
    assert card.feedback
    assert set(card.feedback) <= {"bandit", "full"}
    assert all(text.strip() for text in (card.summary, card.guarantee, card.source))
    assert type(LEARNERS[name]()).__doc__.splitlines()[0].strip()


@pytest.mark.parametrize("name", LEARNERS)
def test_settings_are_frozen_and_built_the_same_every_time(name):
    spec = LEARNERS[name]()
    assert spec == LEARNERS[name]()
    assert repr(spec.build()) == repr(spec.build())
    with pytest.raises(AttributeError):
        spec.anything = 1


@pytest.mark.parametrize(("name", "kind"), [case for case, n in SIZES.items() if not n])
def test_a_learner_that_does_not_fit_says_why_in_a_sentence(name, kind):
    cmdp = world()
    with pytest.raises(InvalidInputError) as refusal:
        with_known_facts(LEARNERS[name]().build(), cmdp, kind).init(cmdp.setting(K, kind))
    assert name.split(".")[0] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_ours_fit_every_kind_of_feedback_and_several_constraints():
    for name in LEARNERS:
        if name.startswith(("OMDPD", "ProximalOMDPD")):
            assert SIZES[name, "bandit"] == SIZES[name, "full"] == I


def trivial():
    """Action 0 earns everything and is safe, action 1 earns nothing and is not; the dynamics do not matter."""
    p = np.random.default_rng(6).dirichlet(np.ones(S), (S, A))
    reward, cost = np.tile([1.0, 0.0], (S, 1)), np.tile([-1.0, 1.0], (S, 1))
    return CMDP.from_arrays(p, reward, cost, budget=0.0, horizon=H)


# Published step sizes for far more episodes than these: here they only have to go the right way.
SLOW = ("OptPrimalDual", "RegularizedPrimalDual", "CPDPO", "CPDPO.unconstrained")


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[0] != "Uniform"])
def test_a_trivial_world_is_solved(name, kind):
    cmdp, rng = trivial(), np.random.default_rng(7)
    learner = told(name, kind, cmdp)
    n = 120
    state = learner.init(cmdp.setting(n, kind))
    values = []
    for _ in range(n):
        policy = learner.policy(state)
        values.append(float((cmdp.reward * forward(policy, cmdp.transition, cmdp.initial)).sum()))
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
        state = learner.update(state, met)
    # The uniform policy earns H/2 = 2 of H = 4, and is then just safe.
    if name in SLOW:
        assert np.mean(values[-20:]) > max(np.mean(values[:20]), 0.5 * H)
    else:
        assert np.mean(values[-20:]) > 0.75 * H
