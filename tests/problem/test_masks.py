"""Actions that are not allowed: the optimum is that of a problem in which they are as bad as can be."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from omdpd import CMDP, InvalidInputError, Policy, ProximalOMDPD, load_problem, run, save_problem
from omdpd.worlds.card import scenario_value

H, S, A = 4, 5, 3


def tables(seed):
    rng = np.random.default_rng(seed)
    allowed = rng.random((S, A)) < 0.5
    allowed[np.arange(S), rng.integers(0, A, S)] = True
    return rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), rng.random((2, S, A)), allowed


def dearest(p, r, c, allowed):
    """Without masks: a forbidden action has one more cost, of which there is none to spend."""
    forbidden = np.where(allowed, 0.0, 1.0)
    return CMDP.from_arrays(p, r, np.concatenate([c, forbidden[None]]), [2.0, 2.2, 0.0], horizon=H)


@pytest.mark.parametrize("seed", range(10))
def test_the_optimum_never_plays_a_forbidden_action_and_is_the_best_of_those(seed):
    p, r, c, allowed = tables(seed)
    found = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=allowed).solve()
    wanted = dearest(p, r, c, allowed).solve()
    assert found.feasible == wanted.feasible
    assert np.all(found.policy.table[:, ~allowed] == 0.0)
    assert np.all(found.occupancy[:, ~allowed] == 0.0)
    if found.feasible:
        assert found.value == pytest.approx(wanted.value, abs=1e-9)
        for pure in found.pure_policies():
            assert np.all(pure.policy.table[:, ~allowed] == 0.0)


@pytest.mark.parametrize("kind", [{"discount": 0.9}, {"criterion": "average"}])
def test_in_the_long_run_too(kind):
    p, r, c, allowed = tables(1)
    found = CMDP.from_arrays(p, r, c[0], None, allowed=allowed, **kind).solve()
    worse = np.where(allowed, r, -50.0)
    wanted = CMDP.from_arrays(p, worse, c[0], None, reward_range=(-50, 1), **kind).solve()
    assert found.value == pytest.approx(wanted.value, abs=1e-8)
    assert np.all(found.policy.table[:, ~allowed] == 0.0)


def test_rows_of_forbidden_actions_may_hold_anything_and_functions_are_not_asked_about_them():
    p, r, c, allowed = tables(2)
    wanted = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=allowed).solve()
    nothing = np.where(allowed[..., None], p, 0.0)
    given = CMDP.from_arrays(nothing, np.where(allowed, r, 99.0), c, [2.0, 2.2], horizon=H, allowed=allowed)
    assert given.solve().value == pytest.approx(wanted.value, abs=1e-12)

    def asked(table):
        def look(s, a):
            assert allowed[s, a]
            return table(s, a)

        return look

    made = CMDP.from_functions(
        (H, S, A), asked(lambda s, a: list(zip(p[s, a], range(S), strict=True))), asked(lambda s, a: r[s, a]),
        asked(lambda s, a: c[:, s, a]), [2.0, 2.2], allowed=lambda s, a: allowed[s, a],
    )  # fmt: skip
    assert made.solve().value == pytest.approx(wanted.value, abs=1e-12)


def test_masks_by_step_and_with_the_action_first():
    p, r, c, allowed = tables(3)
    by_step = np.broadcast_to(allowed, (H, S, A)).copy()
    wide = [np.broadcast_to(p, (H, *p.shape)), np.broadcast_to(r, (H, S, A)), np.broadcast_to(c[:, None], (2, H, S, A))]
    wanted = CMDP.from_arrays(p, r, c, [3.0, 3.0], horizon=H, allowed=allowed).solve().value
    assert CMDP.from_arrays(*wide, [3.0, 3.0], allowed=by_step).solve().value == pytest.approx(wanted)
    first = np.moveaxis(p, 1, 0)
    assert CMDP.from_arrays(
        first, r, c, [3.0, 3.0], horizon=H, allowed=allowed, axes="ASS"
    ).solve().value == pytest.approx(wanted)
    assert wanted is not None
    by_step[1] = True
    more = CMDP.from_arrays(*wide, [3.0, 3.0], allowed=by_step).solve()
    assert more.value >= wanted - 1e-12
    assert np.all(more.policy.table[2][~allowed] == 0.0)


def test_masks_are_kept_and_respected_by_budgets_spending_and_learners(tmp_path):
    p, r, c, allowed = tables(4)
    cmdp = CMDP.from_arrays(p, r, np.round(c), [2.0, 2.2], horizon=H, allowed=allowed)
    again = load_problem(save_problem(cmdp, tmp_path / "it.npz"))
    assert again.mask.allowed[0].tolist() == allowed.tolist()
    assert again.solve().value == pytest.approx(cmdp.solve().value)
    assert np.all(cmdp.with_budget(None).solve().policy.table[:, ~allowed] == 0.0)
    spent = cmdp.with_budget(None).with_spent(0, range(4)).solve()
    assert np.all(spent.policy.table[:, ~np.tile(allowed, (5, 1))] == 0.0)
    assert np.all(run(cmdp, ProximalOMDPD.standard(), n_episodes=2).policy.table[:, ~allowed] == 0.0)


def test_laws_are_masked_once_where_there_are_as_many_actions_as_states():
    rng = np.random.default_rng(8)
    p, r, allowed = rng.dirichlet(np.ones(3), (3, 3)), rng.random((3, 3)), np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1]])
    laws = CMDP.from_arrays(p, r, r, 1.0, horizon=2, allowed=allowed).laws
    for s, a in np.argwhere(allowed):
        found = np.zeros(3)
        found[laws.law(0, s, a)[0]] = laws.law(0, s, a)[1]
        assert found == pytest.approx(p[s, a])


def forms(p, ever):
    """A stationary kernel in all its forms, with nonsense where no step allows an action."""
    bad = np.where(ever[..., None], p, np.nan)
    pairs = [{a: [(p[s, a, t], t) for t in range(S)] for a in range(A) if ever[s, a]} for s in range(S)]
    by_action = [csr_matrix(bad[:, a]) for a in range(A)]
    return {
        "table": (bad, None), "action first": (np.moveaxis(bad, 1, 0), "ASS"), "pairs": (pairs, None),
        "mapping": (dict(enumerate(pairs)), None), "function": (lambda s, a: pairs[s][a], None),
        "matrix": (csr_matrix(bad.reshape(S * A, S)), None), "matrices": (by_action, None),
        "matrix, action first": (csr_matrix(np.moveaxis(bad, 1, 0).reshape(S * A, S)), "ASS"),
        "laws": (CMDP.from_arrays(p, np.zeros((S, A)), np.zeros((S, A)), 0.0, horizon=H).laws, None),
    }  # fmt: skip


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("form", list(forms(tables(0)[0], tables(0)[3])))
def test_laws_of_every_form_take_masks_of_either_shape(form, by_step):
    p, r, c, allowed = tables(9)
    mask = np.stack([allowed, tables(10)[3], tables(11)[3], allowed]) if by_step else allowed
    ever = mask.any(axis=0) if by_step else mask
    given, axes = forms(p, ever)[form]
    dear = np.where(ever, c, np.inf)
    found = CMDP.from_arrays(
        given, np.where(ever, r, np.nan), dear, [2.0, None], horizon=H, allowed=mask, axes=axes
    ).solve()
    wide = [np.stack([x] * H, axis=k) for x, k in ((p, 0), (r, 0), (c, 1))]
    forbidden = np.broadcast_to(~mask, (H, S, A))
    wanted = CMDP.from_arrays(*wide[:2], np.concatenate([wide[2], forbidden[None]]), [2.0, None, 0.0]).solve()
    assert found.value == pytest.approx(wanted.value, abs=1e-9)
    assert not found.policy.table[forbidden].any()


def test_functions_are_not_asked_about_what_no_step_allows():
    p, r, c, allowed = tables(12)
    by_step = np.stack([allowed, tables(13)[3], allowed, allowed])
    ever = by_step.any(axis=0)

    def asked(table):
        return lambda s, a: table(s, a) if ever[s, a] else pytest.fail("it is never allowed")

    made = CMDP.from_functions(
        (H, S, A), asked(lambda s, a: p[s, a]), asked(lambda s, a: r[s, a]), asked(lambda s, a: c[:, s, a]),
        [2.0, 2.2], allowed=by_step,
    )  # fmt: skip
    wanted = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=by_step)
    assert made.solve().evaluation.value == wanted.solve().evaluation.value


def test_a_mask_of_equal_steps_keeps_laws_once():
    p, r, c, allowed = tables(14)
    cmdp = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=np.stack([allowed] * H))
    assert cmdp.stationary
    assert cmdp.mask.allowed.shape == (1, S, A)


def test_what_is_wrong_is_named():
    p, r, c, allowed = tables(5)
    none = allowed.copy()
    none[3] = False
    for mask, sentence in (
        (none, "state 3 has no allowed action"), (allowed[:, :2], "allowed has shape"),
        (np.full((S, A), 2), "true and false"), (np.broadcast_to(allowed, (9, S, A)), "allowed has 9 steps"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=sentence):
            CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=mask)
    cmdp = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=allowed)
    s, a = np.argwhere(~allowed)[0]
    with pytest.raises(InvalidInputError, match=f"action {a} is not allowed in state {s}"):
        Policy(np.full((S, A), 1.0 / A)).evaluate(cmdp)
    assert CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=H, allowed=np.ones((S, A))).mask is None
    lists = [[[(1.0, 0)] for _ in range(A - 1)] for _ in range(S)]
    some = np.ones((S, A), bool)
    some[1, 0] = False
    with pytest.raises(InvalidInputError, match="lists no action 2, which is allowed"):
        CMDP.from_arrays(lists, r, c, [2.0, 2.2], horizon=H, allowed=some)


@pytest.mark.parametrize("by_step", [False, True])
def test_what_scenarios_hold_for_forbidden_actions_does_not_matter(by_step, tmp_path):
    p, r, c, allowed = tables(6)
    dear = wild = tables(7)[2]
    if by_step:
        p, r, c, allowed = np.stack([p] * H), np.stack([r] * H), np.stack([c] * H, axis=1), np.stack([allowed] * H)
        allowed[1:] = ~allowed[1:] | allowed[1:].all(axis=2, keepdims=True)
        wild = np.stack([dear] * H, axis=1)
    cmdp = CMDP.from_arrays(p, r, c, [2.0, 2.2], horizon=None if by_step else H, allowed=allowed)
    plain, found = cmdp.with_scenarios({"it": dear}), cmdp.with_scenarios({"it": np.where(allowed, wild, -50.0)})
    assert found.cost_scale.tolist() == [1.0, 1.0]
    assert scenario_value(found) == scenario_value(plain) is not None
    assert np.array_equal(found.scenarios.tables, plain.scenarios.tables)
    kept = np.broadcast_to(allowed, found.scenarios.tables.shape)
    wanted = np.broadcast_to(wild if by_step else wild[:, None], kept.shape[1:]) - cmdp.budget[:, None, None, None] / H
    assert found.scenarios.tables[kept] == pytest.approx(wanted[None][kept])
    again = load_problem(save_problem(found, tmp_path / "it.npz"))
    assert np.array_equal(again.scenarios.tables, found.scenarios.tables)
    assert scenario_value(found.with_budget([2.1, 2.2])) == scenario_value(plain.with_budget([2.1, 2.2]))
