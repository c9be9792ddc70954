import numpy as np
import pytest

from omdpd.beliefs.bonuses import BernsteinBonus, IteratedLogBonus
from omdpd.beliefs.counts import Counts
from omdpd.problem.arrays import InvalidInputError
from tests.references.instances import bandit, random_cmdp
from tests.references.plain_loop import PlainCounts
from tests.references.policy_by_hand import bonus_tables

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


def test_the_iterated_logarithm_bonus_is_the_published_one_without_a_factor_of_the_horizon():
    setting, counts, plain = met(40)
    believed = IteratedLogBonus(0.0, 0.0, 0.001).estimate(setting, counts, 40)
    for h, s, a in np.ndindex(H - 1, S, A):
        n = plain.moves[h, s, a].sum()
        if n:
            phi = np.sqrt((2 * np.log(np.log(max(2 * n, np.e))) + 2 * np.log(48 * S**2 * A * H / 0.1)) / n)
            bonus = 0.001 * (phi * np.sqrt(plain.moves[h, s, a] / n).sum() + 5 * phi**2)
            expected = min(plain.reward[h, s, a] / plain.n[h, s, a] + bonus, H - h)
            assert believed.reward[h, s, a] == pytest.approx(expected, abs=1e-13)


def test_delta_must_be_a_probability():
    setting, _, _ = met(0)
    with pytest.raises(InvalidInputError, match="delta"):
        BernsteinBonus(delta=0.0).check(setting)
