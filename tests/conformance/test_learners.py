"""What every learner of the table keeps to, under every kind of feedback it takes."""

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from instances import bandit, forward, random_cmdp, revealed
from named import LEARNERS

from omdpd.learners.protocol import Card, Report
from omdpd.play.scene import informed
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 30
EPISODES = 10


def world(n_constraints=I):
    """A world with room below its budgets, for learners that must know of some."""
    return random_cmdp(np.random.default_rng((n_constraints, 1)), H, S, A, n_constraints, budget=0.4)


def told(name, kind, cmdp):
    """The learner, told what it must know of the world; None where it refuses this world."""
    try:
        learner = informed(LEARNERS[name]().build(), cmdp, kind)
        learner.init(cmdp.setting(K, kind))
    except InvalidInputError:
        return None
    return learner


def constraints_of(name, kind):
    """As many constraints as the learner is stated for: several, or one; 0 if it refuses both."""
    return next((n for n in (I, 1) if told(name, kind, world(n)) is not None), 0)


SIZES = {(name, kind): constraints_of(name, kind) for name in LEARNERS for kind in ("bandit", "full")}
CASES = [case for case, n_constraints in SIZES.items() if n_constraints]


def feedback_of(rng, cmdp, policy, kind, k):
    if kind == "bandit":
        return bandit(rng, cmdp, policy)
    return revealed(rng, cmdp, policy, cmdp.excess * (1.0, -0.5, 0.25)[k % 3])


def states_of(name, kind, seed=0, episodes=EPISODES):
    """The states of a short run, the first one included."""
    cmdp, rng = world(SIZES[name, kind]), np.random.default_rng(seed)
    learner = told(name, kind, cmdp)
    states = [learner.init(cmdp.setting(K, kind))]
    for k in range(episodes):
        states.append(learner.update(states[-1], feedback_of(rng, cmdp, learner.policy(states[-1]), kind, k)))
    return learner, states


def frozen_copy(value):
    """Everything a state holds, as plain data that cannot change afterwards."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, tuple | list):
        return tuple(frozen_copy(item) for item in value)
    if is_dataclass(value):
        return tuple((f.name, frozen_copy(getattr(value, f.name))) for f in fields(value))
    return value


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_policy_is_a_law_of_actions_at_every_step_and_state(name, kind):
    learner, states = states_of(name, kind)
    for state in states:
        policy = learner.policy(state)
        assert policy.shape == (H, S, A)
        assert policy.dtype == np.float64
        assert policy.min() >= 0.0
        assert np.allclose(policy.sum(axis=-1), 1.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_same_feedback_gives_the_same_states_to_the_last_bit(name, kind):
    (_, first), (_, second) = states_of(name, kind), states_of(name, kind)
    assert [frozen_copy(state) for state in first] == [frozen_copy(state) for state in second]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_update_leaves_the_state_before_it_and_the_feedback_alone(name, kind):
    learner, states = states_of(name, kind, episodes=4)
    cmdp, rng = world(SIZES[name, kind]), np.random.default_rng(5)
    met = feedback_of(rng, cmdp, learner.policy(states[-1]), kind, 1)
    before, told = frozen_copy(states[-1]), frozen_copy(met)
    learner.update(states[-1], met)
    learner.policy(states[-1])
    learner.report(states[-1])
    assert frozen_copy(states[-1]) == before
    assert frozen_copy(met) == told


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_nothing_but_feedback_matters(name, kind):
    """The global random state is neither read nor moved, and another learner in between changes nothing."""
    np.random.seed(1)  # noqa: NPY002
    _, first = states_of(name, kind, episodes=3)
    np.random.seed(2)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    cmdp, rng = world(SIZES[name, kind]), np.random.default_rng(0)
    learner = told(name, kind, cmdp)
    state = other = learner.init(cmdp.setting(K, kind))
    for k in range(3):
        state = learner.update(state, feedback_of(rng, cmdp, learner.policy(state), kind, k))
        other = learner.update(other, feedback_of(np.random.default_rng(k), cmdp, learner.policy(other), kind, k + 1))
    assert frozen_copy(state) == frozen_copy(first[-1])
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_report_is_made_of_finite_numbers_and_counts_upwards(name, kind):
    learner, states = states_of(name, kind)
    solves = 0
    for state in states:
        said = learner.report(state)
        assert isinstance(said, Report)
        assert said.log.solves >= solves
        solves = said.log.solves
        assert said.log.failures == 0
        assert 0.0 <= said.log.max_gap <= 1e-8
        assert 0.0 <= said.log.max_residual <= 1e-9
        for number in (said.step_size, said.weight, said.ignored):
            assert number is None or (math.isfinite(number) and number >= 0.0)
        if said.certificate is not None:
            assert math.isfinite(said.certificate.regret)
            assert said.certificate.violation >= 0.0


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_a_card_and_its_spec_a_line(name):
    card = LEARNERS[name]().build().card
    assert isinstance(card, Card)
    assert card.feedback
    assert set(card.feedback) <= {"bandit", "full"}
    assert all(text.strip() for text in (card.summary, card.guarantee, card.source))
    assert LEARNERS[name].__doc__.splitlines()[0].strip()


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
        informed(LEARNERS[name]().build(), cmdp, kind).init(cmdp.setting(K, kind))
    assert name.split(".")[0] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_ours_fit_every_kind_of_feedback_and_several_constraints():
    for name in LEARNERS:
        if name.startswith(("OMDPD", "ProximalOMDPD")):
            assert SIZES[name, "bandit"] == SIZES[name, "full"] == I


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_unknown_number_of_episodes_is_served_or_refused_with_a_sentence(name, kind):
    cmdp = world(SIZES[name, kind])
    learner = told(name, kind, cmdp)
    said = ""
    try:
        policy = learner.policy(learner.init(cmdp.setting(None, kind)))
    except InvalidInputError as refusal:
        said = str(refusal)
    assert "n_episodes" in said or np.allclose(policy.sum(axis=-1), 1.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 1, 2), (3, 2, 1), (1, 1, 1)])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_horizon_of_one_a_single_state_and_a_single_action_are_served(name, kind, shape):
    rng = np.random.default_rng(3)
    cost = -rng.random((SIZES[name, kind], *shape))  # every policy is strictly safe
    cmdp = CMDP.from_arrays(rng.dirichlet(np.ones(shape[1]), shape), rng.random(shape), cost)
    learner = told(name, kind, cmdp)
    state = learner.init(cmdp.setting(K, kind))
    for k in range(3):
        state = learner.update(state, feedback_of(rng, cmdp, learner.policy(state), kind, k))
    assert np.allclose(learner.policy(state).sum(axis=-1), 1.0, rtol=0.0, atol=1e-12)
    assert learner.report(state).log.failures == 0


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_initial_law_without_some_states_is_served(name, kind):
    cmdp = replace(world(SIZES[name, kind]), initial=np.array([0.0, 1.0, 0.0]))
    learner, rng = told(name, kind, cmdp), np.random.default_rng(4)
    state = learner.init(cmdp.setting(K, kind))
    for k in range(4):
        state = learner.update(state, feedback_of(rng, cmdp, learner.policy(state), kind, k))
    assert learner.report(state).log.failures == 0


def trivial():
    """Action 0 earns everything and is safe, action 1 earns nothing and is not; the dynamics do not matter."""
    p = np.random.default_rng(6).dirichlet(np.ones(S), (S, A))
    reward, cost = np.tile([1.0, 0.0], (S, 1)), np.tile([-1.0, 1.0], (S, 1))
    return CMDP.from_arrays(p, reward, cost, horizon=H)


# Published step sizes for far more episodes than these: here they only have to go the right way.
SLOW = ("OptPrimalDual", "RegularizedPrimalDual", "CPDPO")


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
