"""The inequalities of Theorem D (docs/theory.md, 11), followed beside the truth.

Before an episode r~, p and Y' = sum lam' T' are those of its step, Y = sum lam T that of the step before it; Q and W
are the optimistic values that the bonus was made with, and g is the occupancy under p of the greedy policy of Q.

    (3)         Q >= r^ - sum lam d^ + p^.W + beta                        in visited rows with ln+ > 0
    Lemma 5     V* <= W_0 + D_k
    a step      s_k := (r~ - Y').g - r~.q + sum w [T'.q]^+  <=  (D(g, q_hat) - D(g, q)) / eta
    a path      sum_k s_k + P_k  <=  (H + G) / eta + A (2H + G),     P_k = (Y' - Y).g,  G = sum |g_{k+1} - g_k|_1
    Theorem D   regret <= sum_k s_k + P_k + D_k + x_k

A is the largest entry of any Y, and x_k what a plan promises beyond what its policy earns.
"""

from __future__ import annotations

import numpy as np

from omdpd.beliefs import rules
from omdpd.beliefs.standard import SharingEstimator
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.standard.state import Learnt
from omdpd.problem.arrays import Floats
from omdpd.solvers.compiled.flow import occupancy_of_policy
from omdpd.solvers.compiled.products import dot
from omdpd.theory.inequalities import NO_COMPARATOR, HeldAgainst, Inequality, SeenEpisode, Track

OTHERS = "it is about the beliefs of `ProximalOMDPD.standard` with persistence, of steps that are not pooled"
REVEALED = "it is about costs that are met on the way, not revealed"
overdue, own_bonus = np.vectorize(rules.overdue), np.vectorize(rules.own_bonus)


class Persistence:
    """Theorem D of a run, link by link."""

    def __init__(self, learner: ProximalOMDPD, truth: HeldAgainst) -> None:
        self.truth, self._sums, self._why = truth, np.zeros(5), NO_COMPARATOR
        self._last: Learnt | None = None
        self._greedy: Floats | None = None
        self._moves = self._most = 0.0
        estimator = learner.estimator
        self._persistence = estimator.persistence if isinstance(estimator, SharingEstimator) else 0.0
        if self._persistence == 0.0 or getattr(estimator, "stationary", False):
            self._why = OTHERS
        self._word = Track("a row's own word", "theory.md, (3)", "r^ - sum lam d^ + p^.W + beta <= Q", single=True)
        self._optimism = Track("optimism but for a deficiency", "theory.md, Lemma 5", "V* <= W_0 + D_k", single=True)
        step = "s_k <= (D(g, q_hat) - D(g, q)) / eta"
        self._step = Track("a step beside the greedy plan", "theory.md, Lemma 6", step, single=True)
        path = "sum_k s_k + P_k <= (H + G)/eta + A (2H + G)"
        self._path = Track("path of the greedy plan", "theory.md, Lemma 6", path)
        self._regret = Track("regret of Theorem D", "theory.md, Theorem D", "regret <= sum_k s_k + P_k + D_k + x_k")
        if truth.best.policy is not None:
            tables = (truth.cmdp.reward, *truth.cmdp.excess)
            self._F = [_values(table, truth.cmdp.transition, truth.best.policy) for table in tables]

    def see(self, episode: SeenEpisode) -> None:
        """One more episode: beliefs and plan are of the state before it."""
        best, state, last = self.truth.best, episode.before, self._last
        self._last = state
        if episode.revealed:
            self._why = REVEALED
        elif self._why != OTHERS and best.policy is not None and best.value is not None and isinstance(state, Learnt):
            self._follow(state, last, best.policy, best.value, episode)

    def _follow(self, state: Learnt, last: Learnt | None, policy: Floats, value: float, episode: SeenEpisode) -> None:
        cmdp, r, p, mu = self.truth.cmdp, state.believed.reward, state.believed.region.transition, state.setting.mu
        lam, T = _paid(state if last is None else last)
        own_lam, own_T = _paid(state)
        if last is None:
            lam = 0.0 * lam
        Q, W = _best(r - np.tensordot(lam, T, 1), p)
        word, law, n, beta, width = self._own(state, W, lam)
        due, seen = beta > 0.0, n > 0.0
        self._word.add(float((word + beta - Q)[due & seen].max(initial=0.0)), 0.0)
        lack = self._lack(state, lam, law, width) + np.where(due, 0.0, np.maximum(word - Q, 0.0))
        F = self._F[0] - np.tensordot(lam, self._F[1:], 1)
        truly = cmdp.reward - np.tensordot(lam, cmdp.excess, 1) + _ahead(cmdp.transition, F)
        lack = np.where(seen, lack, np.maximum(truly - _ahead(law, F - W) - Q, 0.0))
        deficiency = dot(occupancy_of_policy(policy, law, mu), lack)
        first = float(mu @ W[0])
        self._optimism.add(value, first + deficiency)
        greedy = occupancy_of_policy(np.eye(Q.shape[-1])[Q.argmax(axis=-1)], p, mu)
        Y, own_Y = np.tensordot(lam, T, 1), np.tensordot(own_lam, own_T, 1)
        planned, earned, eta = dot(r, state.q), dot(cmdp.reward, episode.occupancy), state.eta
        exceeded = np.maximum(np.tensordot(own_T, state.q, 3), 0.0)
        left = dot(r - own_Y, greedy) - planned + float(state.parts.hinge_weights[: len(own_lam)] @ exceeded)
        q_hat = state.parts.q_hat.reshape(state.q.shape)
        self._step.add(left, 0.5 * float(((greedy - q_hat) ** 2).sum() - ((greedy - state.q) ** 2).sum()) / eta)
        self._moves += 0.0 if self._greedy is None else float(np.abs(greedy - self._greedy).sum())
        self._greedy, self._most = greedy, max(self._most, float(np.abs(own_Y).max()), float(np.abs(Y).max()))
        self._sums += [value - earned, left, dot(own_Y - Y, greedy), deficiency, planned - earned]
        H = len(greedy)
        path = (H + self._moves) / eta + self._most * (2 * H + self._moves)
        self._path.add(float(self._sums[1:3].sum()), path)
        self._regret.add(float(self._sums[0]), float(self._sums[1:].sum()))

    def _own(self, state: Learnt, W: Floats, lam: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """What rows saw themselves are worth, their laws, visits, beta, and the width of a cost."""
        c, n, k = state.counts, state.counts.visits, state.counts.visits[0].sum()
        many = np.maximum(n, 1.0)
        law = np.where((n > 0.0)[..., None], c.transitions / many[..., None], state.believed.region.transition)
        due = overdue(rules.OVERDUE_SHARE * k, n, float(n.size))
        word = (c.reward_sum - np.tensordot(lam, c.cost_sum, 1)) / many + _ahead(law, W)
        width = 2.0 * own_bonus(self._persistence, 0.0, due, n)
        return word, law, n, own_bonus(self._persistence, float(lam.sum()), due, n), width

    def _lack(self, state: Learnt, lam: Floats, law: Floats, width: Floats) -> Floats:
        """[dev^r]^+ + sum lam_i [dev^i]^+ of every row."""
        cmdp, c, many = self.truth.cmdp, state.counts, np.maximum(state.counts.visits, 1.0)
        off = [
            table + _ahead(cmdp.transition - law, F) - mine / many
            for table, F, mine in zip((cmdp.reward, *cmdp.excess), self._F, (c.reward_sum, *c.cost_sum), strict=True)
        ]
        lack = np.maximum(off[0] - width / 2.0, 0.0)
        for price, each in zip(lam, off[1:], strict=True):
            lack = lack + price * np.maximum(-each - width, 0.0)
        return lack

    def done(self) -> list[Inequality]:
        """The five."""
        if self._regret.left:
            parts = " + ".join(f"{each:.4g}" for each in self._sums[1:])
            self._regret.remark(f"the right side is {parts}: steps, prices, deficiency, estimation")
        tracks = (self._word, self._optimism, self._step, self._path, self._regret)
        return [track.done(self._why) for track in tracks]


def _paid(state: Learnt) -> tuple[Floats, Floats]:
    """What the step of a state pays for its tables, and the tables."""
    n = state.setting.n_constraints
    return state.parts.multipliers[:n] / state.eta, state.parts.tables[:n].reshape(n, *state.setting.shape)


def _ahead(law: Floats, values: Floats) -> Floats:
    """Mean values of what follows every row; nothing follows the last step."""
    found: Floats = np.einsum("hsat,ht->hsa", law, values[1:])
    return found


def _best(table: Floats, p: Floats) -> tuple[Floats, Floats]:
    """(Q, W) of the best policy for a table; W is one longer."""
    Q, W = np.empty(table.shape), np.zeros((len(table) + 1, table.shape[1]))
    for h in reversed(range(len(table))):
        Q[h] = table[h] + p[h] @ W[h + 1]
        W[h] = Q[h].max(axis=-1)
    return Q, W


def _values(table: Floats, p: Floats, policy: Floats) -> Floats:
    """Values-to-go of a policy, one longer."""
    F = np.zeros((len(table) + 1, table.shape[1]))
    for h in reversed(range(len(table))):
        F[h] = (policy[h] * (table[h] + p[h] @ F[h + 1])).sum(axis=-1)
    return F
