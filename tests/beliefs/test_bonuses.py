import numpy as np
import pytest
from instances import bandit, random_cmdp
from plain_loop import PlainCounts
from policy_by_hand import bonus_tables

from omdpd.beliefs.bonuses import BernsteinBonus, IteratedLogBonus
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import InvalidInputError

H, S, A, I = 4, 3, 2, 2  # noqa: E741
K = 50


def met(episodes):
    cmdp = random_cmdp(np.random.default_rng(0), H, S, A, I)
    rng = np.random.default_rng(1)
    counts, plain = Counts.empty(cmdp.setting(K, "bandit")), PlainCounts(H, S, A, I)
    for _ in range(episodes):
        feedback = bandit(rng, cmdp, np.full((H, S, A), 1 / A))
        counts = counts.add(feedback)
        plain.add(feedback)
    return cmdp.setting(K, "bandit"), counts, plain


@pytest.mark.parametrize("episodes", [0, 3, 40])
@pytest.mark.parametrize("scales", [(0.2, 0.0, 0.005), (1.0, 1.0, 1.0), (0.1, 0.3, 0.0)])
def test_the_tables_are_their_formulas(episodes, scales):
    setting, counts, plain = met(episodes)
    believed = BernsteinBonus(*scales).estimate(setting, counts, episodes)
    r, d, p = bonus_tables(plain, K, scales)
    assert np.allclose(believed.reward, r, rtol=0, atol=1e-13)
    assert np.allclose(believed.cost, d, rtol=0, atol=1e-13)
    assert np.allclose(believed.transition, p, rtol=0, atol=1e-15)


def test_the_iterated_logarithm_bonus_is_wider_with_less_data_and_stays_in_range():
    setting, few, _ = met(5)
    _, many, _ = met(200)
    bonus = IteratedLogBonus(0.0, 0.0, 0.001)
    left = np.arange(H, 0, -1.0)[:, None, None]
    for counts in (few, many):
        believed = bonus.estimate(setting, counts, 5)
        assert np.all(believed.reward <= left)
        assert np.all(believed.cost >= -left)
    wide = bonus.estimate(setting, few, 5).reward[:-1] - few.reward_mean()[:-1]
    narrow = bonus.estimate(setting, many, 5).reward[:-1] - many.reward_mean()[:-1]
    both = (few.visits[:-1] > 0) & (many.visits[:-1] > few.visits[:-1]) & (wide < 1.0)
    assert both.any()
    assert np.all(narrow[both] < wide[both])


def test_delta_must_be_a_probability():
    setting, _, _ = met(0)
    with pytest.raises(InvalidInputError, match="delta"):
        BernsteinBonus(delta=0.0).check(setting)
