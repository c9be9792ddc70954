"""Learners where actions are forbidden: none is ever played, and what is learnt is what can be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omdpd import CMDP, BanditFeedback, InvalidInputError, ProximalOMDPD, Session, Setting, Trajectory, run
from omdpd.learners import LEARNERS, Masked, SafePolicy, Uniform
from omdpd.learners.masked import choices_of, told
from omdpd.play.simulate import play_episode
from omdpd.problem.cmdp import Round
from omdpd.problem.masks import Choices, as_mask
from omdpd.solvers.sweeps import value_under

H, S, A = 4, 5, 4


def tables(seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), rng.random((S, A))


def two_of_four(seed):
    """Two actions of four in every state, and the same problem without the other two."""
    p, r, c = tables(seed)
    kept = np.sort(np.argsort(np.random.default_rng((seed, 1)).random((S, A)), axis=1)[:, :2], axis=1)
    allowed = np.zeros((S, A), bool)
    np.put_along_axis(allowed, kept, True, axis=1)
    less = [np.take_along_axis(each, kept, axis=1) for each in (r, c)]
    fewer = CMDP.from_arrays(np.take_along_axis(p, kept[..., None], axis=1), *less, 1.6, horizon=H)
    return CMDP.from_arrays(p, r, c, 1.6, horizon=H, allowed=allowed), fewer, kept


def uneven(seed):
    """One to four actions in a state."""
    rng = np.random.default_rng((seed, 2))
    allowed = rng.random((S, A)) < 0.5
    allowed[np.arange(S), rng.integers(0, A, S)] = True
    p, r, c = tables(seed)
    return CMDP.from_arrays(p, r, c, 2.2, horizon=H, allowed=allowed)


@pytest.mark.parametrize(
    "name", ["ProximalOMDPD.standard", "OptCMDP", "TripleQ", "BVOPS", "OPDOP", "PosteriorSampling"]
)
def test_with_as_many_actions_everywhere_a_run_is_that_of_the_problem_without_the_others(name):
    masked, fewer, kept = two_of_four(3)
    learner = LEARNERS[name]()
    found, wanted = (run(cmdp, learner, "noisy", 40, seed=5) for cmdp in (masked, fewer))
    assert found.values.tolist() == wanted.values.tolist()
    assert found.scores.regret == wanted.scores.regret
    here = np.broadcast_to(kept, (H, S, 2))
    assert np.array_equal(np.take_along_axis(found.policy.table, here, axis=2), wanted.policy.table)


@pytest.mark.parametrize("nature", ["noisy", "pool", "adaptive", "independent", "switching_rewards", "anchored"])
def test_regret_is_held_against_the_best_allowed_policy(nature):
    """Whatever a table holds for forbidden actions: they are given one cost more, of which there is none to spend."""
    cmdp = uneven(4)
    found = run(cmdp, Uniform(), nature, 12, seed=1)
    assert np.all(found.policy.table[:, ~cmdp.mask.allowed[0]] == 0.0)
    if found.comparator.policy is None:
        return
    assert np.all(found.comparator.policy[:, ~cmdp.mask.allowed[0]] == 0.0)
    if nature in ("noisy", "pool", "adaptive", "anchored"):
        value = value_under(cmdp.laws, found.comparator.policy, cmdp.initial, cmdp.reward)
        assert value == pytest.approx(found.comparator.value, abs=1e-9)


def test_the_default_learns_where_states_allow_different_numbers_of_actions():
    """Over five worlds: far better than the uniform policy, and nearly all of what is lost is lost at first."""
    mine, random, first, last = 0.0, 0.0, 0.0, 0.0
    for seed in range(5):
        found, uniform = (
            run(uneven(seed), learner, "noisy", 1200, seed=2) for learner in (ProximalOMDPD.standard(), Uniform())
        )
        mine += found.scores.regret + found.scores.violation
        random += uniform.scores.regret + uniform.scores.violation
        lost = found.regret + found.violation
        first, last = first + lost[149], last + lost[1199] - lost[1049]
    assert mine < 0.25 * random
    assert last < 0.1 * first


def test_a_learner_is_told_the_name_under_which_it_did_an_action():
    choices = Choices.of(as_mask([[1, 1, 1], [0, 0, 1]], (2, 3)), (1, 2, 3))
    assert choices.action.tolist() == [[[0, 1, 2], [2, 2, 2]]]
    policy = np.array([[[0.2, 0.3, 0.5], [0.5, 0.0, 0.5]]])
    assert choices.outward(policy).tolist() == [[[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]]
    at = np.array([1]), np.array([2])
    assert [choices.names(*at, policy, np.array([u]))[0] for u in (0.0, 0.49, 0.5, 0.999)] == [0, 0, 2, 2]
    unknown = np.zeros((1, 2, 3))  # somebody else played: every name is as likely
    assert [choices.names(*at, unknown, np.array([u]))[0] for u in (0.0, 0.4, 0.7)] == [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_what_comes_out_is_a_policy_of_allowed_actions_and_goes_back_in(seed, H, S, A, by_step):
    rng = np.random.default_rng(seed)
    allowed = rng.random((H if by_step else 1, S, A)) < 0.5
    np.put_along_axis(allowed, rng.integers(0, A, (*allowed.shape[:2], 1)), True, axis=2)
    choices = Choices.of(as_mask(allowed, (S, A)), (H, S, A))
    assert np.take_along_axis(allowed, choices.action[: len(allowed)], axis=2).all()
    own = rng.dirichlet(np.ones(choices.action.shape[2]), (H, S))
    policy = choices.outward(own)
    assert policy.sum(axis=2) == pytest.approx(np.ones((H, S)))
    assert not policy[np.broadcast_to(~allowed, policy.shape)].any()
    again = choices.outward(choices.policy_inward(policy))
    assert again == pytest.approx(policy)
    # Every allowed action has a name, so that whatever the truth rewards can be found.
    named = choices.outward(np.ones(own.shape)) > 0.0
    assert np.array_equal(named, np.broadcast_to(allowed, named.shape))


def test_names_come_as_often_as_the_learners_own_policy_has_them():
    """Weights by the learner's own policy stay unbiased: the mean of 1{name} / probability is one."""
    cmdp = uneven(1)
    setting = cmdp.setting(None, "bandit")
    choices = choices_of(setting)
    own = np.random.default_rng(0).dirichlet(np.ones(choices.action.shape[2]), (H, S))
    rng, total, n = np.random.default_rng(1), np.zeros(own.shape), 4000
    round_ = Round(cmdp.reward, cmdp.excess)
    for k in range(n):
        walk = told(
            setting, choices, play_episode(cmdp, round_, choices.outward(own), "bandit", rng), own, k
        ).trajectory
        total[np.arange(H), walk.states, walk.actions] += 1.0
    visits = total.sum(axis=2, keepdims=True)
    spread = np.sqrt(own * (1.0 - own) / np.maximum(visits, 1.0))
    assert np.all(np.abs(total / np.maximum(visits, 1.0) - own) < 5.0 * spread + 1e-12)


def test_a_session_plays_and_takes_allowed_actions_alone(tmp_path):
    allowed = np.array([[1, 0, 1], [0, 1, 0]])
    setting = Setting(2, 2, 3, allowed=allowed, seed=4)
    good = BanditFeedback(Trajectory([0, 1], [2, 1]), [1.0, 0.0], [[0.2, -0.1]])
    with Session.open(tmp_path / "it", ProximalOMDPD.standard(), setting) as session:
        for _ in range(3):
            assert not session.policy().table[:, allowed == 0].any()
            session.update(good)
        with pytest.raises(InvalidInputError, match=r"actions\[1\] = 0 is not allowed in state 1 at step 1"):
            session.update(BanditFeedback(Trajectory([0, 1], [2, 0]), [1.0, 0.0], [[0.2, -0.1]]))
        assert session.episodes == 3
        before = session.policy().table
    with Session.open(tmp_path / "it", ProximalOMDPD.standard(), setting, snapshot_every=1) as session:
        assert np.array_equal(session.policy().table, before)
        session.update(good, initial=[0.0, 1.0])
    with Session.open(tmp_path / "it", ProximalOMDPD.standard(), setting, snapshot_every=1) as session:
        session.update(good)  # from the snapshot that was taken before this
    with pytest.raises(InvalidInputError, match="allowed"):
        Session.open(tmp_path / "it", ProximalOMDPD.standard(), Setting(2, 2, 3, seed=4))


def test_logged_episodes_of_somebody_else_are_told_by_the_learners_numbers():
    setting = Setting(2, 2, 3, allowed=[[1, 0, 1], [0, 1, 0]])
    logged = [BanditFeedback(Trajectory([0, 1], [2, 1]), [1.0, 0.0], [[-0.2, -0.1]])] * 5
    for learner in (ProximalOMDPD.standard(), ProximalOMDPD.cautious(), LEARNERS["TripleQ"]()):
        known = Setting(2, 2, 3, n_episodes=9, allowed=setting.allowed)
        policy = Session(learner, known, logged=logged, start="explore").policy().table
        assert not policy[:, 0, 1].any()
        assert not policy[:, 1, [0, 2]].any()


def test_a_safe_policy_is_given_by_actions():
    cmdp = two_of_four(6)[0]
    safe = cmdp.with_budget(1.2).solve().policy.table
    learner = LEARNERS["OptPessLP"](safe=SafePolicy(safe, 1.2))
    session = Session(learner, Setting(H, S, A, budget=1.6, allowed=cmdp.mask.allowed))
    assert session.policy().table == pytest.approx(safe)
    assert np.all(run(cmdp, learner, "noisy", 3, seed=0).policy.table[:, ~cmdp.mask.allowed[0]] == 0.0)
    wrong = np.full((H, S, A), 1.0 / A)
    with pytest.raises(InvalidInputError, match="is not allowed in state"):
        run(cmdp, LEARNERS["OptPessLP"](safe=SafePolicy(wrong, 1.2)), "noisy", 3)


def test_masks_by_step_are_refused_by_learners_that_take_all_steps_for_one():
    allowed = np.ones((2, 2, 3))
    allowed[1, 0, 0] = 0
    with pytest.raises(InvalidInputError, match="allowed differs by step"):
        Session(ProximalOMDPD.standard(stationary=True), Setting(2, 2, 3, allowed=allowed))
    policy = Session(ProximalOMDPD.standard(), Setting(2, 2, 3, allowed=allowed)).policy().table
    assert policy[1, 0, 0] == 0.0 < policy[0, 0, 0]


def test_without_a_mask_nothing_is_wrapped():
    setting = Setting(2, 2, 3, allowed=np.ones((2, 3)))
    assert setting.allowed is None
    assert not isinstance(Session(ProximalOMDPD.standard(), setting)._player, Masked)
