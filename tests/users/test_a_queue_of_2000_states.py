"""A user with a queue of 2000 states, costs in hours, money in euros and a weekly budget: known first, then unknown."""

import warnings

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from omdpd import (
    CMDP,
    OMDPD,
    BanditFeedback,
    InvalidInputError,
    Policy,
    ProximalOMDPD,
    Session,
    Setting,
    Trajectory,
    plot,
)
from omdpd.gym import learn

DAYS, JOBS, ACTIONS = 7, 2000, 2  # a day is served by the usual team, or with overtime
SERVED, OVERTIME, ARRIVALS = (40, 60), (0.0, 8.0), (30, 45, 60)
WEEKLY_HOURS, START = 24.0, 100
EUROS = (-10.0 * JOBS - 400.0, 0.0)  # every job that waits costs 10 a day, a day of the team 150 or 400
LUMP = 20  # jobs per state, where a table of all states is too much


def euros(jobs, action):
    return -10.0 * jobs - (150.0, 400.0)[action]


def law(jobs, action):
    left = max(jobs - SERVED[action], 0)
    return [(1.0 / 3.0, min(left + more, JOBS - 1)) for more in ARRIVALS]


def queue(start=START):
    reward = [[euros(s, a) for a in range(ACTIONS)] for s in range(JOBS)]
    initial = np.zeros(JOBS)
    initial[start] = 1.0
    return CMDP.from_arrays(
        law, reward, [list(OVERTIME)] * JOBS, budget=WEEKLY_HOURS, initial=initial, horizon=DAYS,
        reward_range=EUROS,
    )  # fmt: skip


def a_week(policy, jobs, rng, state_of=lambda jobs: jobs):
    """Play one week in the real world: states, actions, euros and hours, and the jobs that are left."""
    states, actions, earned, hours = [], [], [], []
    for day in range(DAYS):
        states.append(state_of(jobs))
        actions.append(policy.act(day, states[-1], rng))
        earned.append(euros(jobs, actions[-1]))
        hours.append(OVERTIME[actions[-1]])
        jobs = min(max(jobs - SERVED[actions[-1]], 0) + int(rng.choice(ARRIVALS)), JOBS - 1)
    return BanditFeedback(Trajectory(states, actions), earned, [hours]), jobs


def test_the_known_queue_is_solved_in_euros_and_hours(tmp_path):
    solution = queue().solve()
    assert solution.evaluation.safe
    assert solution.evaluation.costs == pytest.approx([WEEKLY_HOURS])  # overtime pays, so all of it is used
    assert solution.shadow_prices[0] > 0.0  # euros per hour
    assert EUROS[0] * DAYS < solution.value < solution.free_value < 0.0
    policy = Policy.load(solution.policy.save(tmp_path / "week.npz"))
    assert policy.evaluate(queue()).value == pytest.approx(solution.value)
    assert len(str(policy).splitlines()) < 50
    plot(policy, tmp_path / "week.png")
    hours = np.mean([np.sum(a_week(policy, START, np.random.default_rng(k))[0].costs) for k in range(200)])
    assert hours == pytest.approx(WEEKLY_HOURS, abs=2.0)


def test_an_impossible_demand_is_a_sentence():
    demanding = CMDP.from_arrays(law, np.zeros((JOBS, 2)), np.ones((JOBS, 2)), budget=5.0, horizon=DAYS)
    assert demanding.solve().impossible == (
        "no policy meets the budget 5 of constraint 0: the least possible cost is 7"
    )


def test_the_unknown_queue_is_too_much_for_a_table_of_a_year_and_that_is_said():
    with pytest.raises(InvalidInputError, match=r"on 2000 states, 2 actions and 365 steps needs about .* lump states"):
        Session(OMDPD.tuned(), Setting(365, JOBS, ACTIONS, n_episodes=10))


def test_the_unknown_queue_is_learnt_in_lumps_from_week_to_week(tmp_path):
    n_states = JOBS // LUMP
    setting = Setting(
        DAYS, n_states, ACTIONS, budget=WEEKLY_HOURS, cost_scale=8.0, reward_range=EUROS,
        initial=np.eye(n_states)[START // LUMP],
    )  # fmt: skip
    rng, jobs = np.random.default_rng(0), START
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # in lumps it is neither too large nor slow
        for _ in range(3):
            with Session.open(tmp_path / "weeks", ProximalOMDPD.standard(stationary=True), setting) as session:
                played, jobs = a_week(session.policy(), jobs, rng, lambda jobs: jobs // LUMP)
                session.update(played, initial=np.eye(n_states)[jobs // LUMP])
    with Session.open(tmp_path / "weeks", ProximalOMDPD.standard(stationary=True), setting) as session:
        assert session.episodes == 3
        assert session._state.setting.mu[jobs // LUMP] == 1.0


class Backlog:
    """The queue as a Gymnasium environment that publishes no table; two months of it are too much for one."""

    def __init__(self, states):
        self.observation_space, self.action_space = Discrete(states), Discrete(ACTIONS)

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.jobs = START
        return self.jobs, {}

    def step(self, action):
        cost, most = OVERTIME[action] / 8.0, self.observation_space.n - 1
        self.jobs = min(max(self.jobs - SERVED[action], 0) + int(self.rng.choice(ARRIVALS)), most)
        return self.jobs, 1.0 - self.jobs / most, False, False, {"cost": cost}


def test_an_environment_of_2000_states_needs_no_word_about_tables_for_a_learner_that_keeps_none():
    """Sixty days have 480 million transition probabilities, of which a few hundred are met."""
    days = 60
    learned = learn(Backlog(JOBS), ProximalOMDPD.standard(stationary=True), 3, days, 0.5 * days)
    assert learned.policy.shape == (days, JOBS, ACTIONS)
    with pytest.raises(InvalidInputError, match="need tables of"):
        learn(Backlog(JOBS), OMDPD.tuned(), 3, days, 0.5 * days)
