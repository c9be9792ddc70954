"""Episodes played together are the episodes that the learner's verbs play one by one, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omdpd import CMDP
from omdpd.experiments.one_run import advance
from omdpd.experiments.registry import Registry
from omdpd.learners.protocol import stored_classes
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.surrogate import Weighting
from omdpd.natures import NATURES
from omdpd.natures.fixed import Fixed
from omdpd.natures.pool import Pool, draw_pool
from omdpd.natures.protocol import rounds_ahead
from omdpd.play import loop
from omdpd.play.ahead import Stage
from omdpd.play.loop import first, play, stretches
from omdpd.play.scene import Scene
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import Round
from omdpd.solvers.compiled.options import COMPILED
from omdpd.solvers.compiled.products import costliest
from omdpd.storage.packing import pack, unpack
from omdpd.storage.run_folder import RunFolder
from omdpd.testing import check_nature
from omdpd.testing.common import ConformanceError
from omdpd.worlds import WORLDS, random_dirichlet

SEED = 5


@pytest.fixture(scope="module", autouse=True)
def the_machine_is_quick() -> Iterator[None]:
    """As many episodes are played together as may be, however long they take here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "BLINK", 1e9)
        yield


def world(S: int = 4, A: int = 2, H: int = 3, n_constraints: int = 1, seed: int = 0) -> CMDP:
    rng = np.random.default_rng(seed)
    cost = rng.random((n_constraints, H, S, A))
    return CMDP.from_arrays(
        rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A)), cost, np.full(n_constraints, 0.45 * H)
    )


def one_by_one(scene: Scene, episodes: int) -> tuple[Any, ...]:
    rng, values, rows = np.random.default_rng(SEED), [], []
    for value, row, now in play(scene, first(scene), rng, lambda k: k % 3 == 0):
        values.append(value)
        rows += [] if row is None else [row]
        if now.k == episodes:
            break
    return values, rows, now, rng.bit_generator.state


def together(scene: Scene, episodes: int, stops: tuple[int, ...] = ()) -> tuple[Any, ...]:
    rng, values, rows, lengths = np.random.default_rng(SEED), [], [], []
    for told, more, now in stretches(scene, first(scene), rng, lambda k: k % 3 == 0, (*stops, episodes)):
        values += told
        rows += more
        lengths.append(len(told))
        if now.k == episodes:
            break
    return values, rows, now, rng.bit_generator.state, lengths


def same(scene: Scene, stops: tuple[int, ...] = ()) -> list[int]:
    """Play a scene both ways, hold them to each other, and say how long the stretches were."""
    values, rows, now, state = one_by_one(scene, scene.episodes)
    other_values, other_rows, other_now, other_state, lengths = together(scene, scene.episodes, stops)
    assert other_values == values
    assert other_rows == rows
    assert other_state == state
    assert packed(other_now) == packed(now)
    return lengths


def share_together(lengths: list[int]) -> float:
    """The share of the episodes that were played in stretches of more than one."""
    return sum(n for n in lengths if n > 1) / sum(lengths)


def packed(now: Any) -> tuple[Any, dict[str, bytes]]:
    """Everything of a progress but the clock, as bytes."""
    tree, arrays = pack((now.learner_state, now.totals, now.keys, now.ledger, now.weights))
    return tree, {name: array.tobytes() for name, array in arrays.items()}


def standard(scene_world: CMDP, nature: Any, episodes: int, **dials: Any) -> Scene:
    picked = NATURES[nature](scene_world, 3) if isinstance(nature, str) else nature
    return Scene(scene_world, picked, ProximalOMDPD.standard(**dials), episodes, {})


@pytest.mark.parametrize("nature", ["fixed", "noisy", "pool", "adaptive"])
def test_three_thousand_episodes_together_are_those_one_by_one(nature: str) -> None:
    scene = standard(random_dirichlet.make(np.random.default_rng(7), 5, 3, 5), nature, 3000 if COMPILED else 40)
    assert share_together(same(scene)) > 0.9


@pytest.mark.parametrize("nature", ["fixed", "noisy", "pool", "adaptive"])
@pytest.mark.parametrize(
    "dials",
    [
        {"z": 0.0}, {"z": 4.0}, {"exploration": 0.0}, {"stationary": True}, {"w0": 0.01}, {"w0": 1e5},
        {"gamma_scale": 300.0}, {"w_max": 12.0}, {"memory": 2}, {"memory": 0}, {"eta_bandit": 50.0, "eta": 50.0},
        {"patient": False},
    ],
    ids=str,
)  # fmt: skip
def test_every_dial_is_turned_the_same_way(nature: str, dials: dict[str, Any]) -> None:
    share = share_together(same(standard(world(), nature, 200, **dials)))
    # A memory of two tables, or of the last one, does not hold a pool of four.
    assert share > 0.5 or (nature in {"pool", "adaptive"} and "memory" in dials)


@settings(max_examples=25 if COMPILED else 2, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 10_000),
    st.sampled_from(["fixed", "noisy", "pool", "adaptive"]),
)  # fmt: skip
def test_worlds_of_every_shape(S: int, A: int, H: int, n_constraints: int, seed: int, nature: str) -> None:
    rng = np.random.default_rng(seed)
    cmdp = CMDP.from_arrays(
        rng.dirichlet(np.ones(S), (H, S, A)), rng.random((H, S, A)), rng.random((n_constraints, H, S, A)),
        np.full(n_constraints, 0.8 * H),
    )  # fmt: skip
    lengths = same(standard(cmdp, "noisy" if nature in {"pool", "adaptive"} and S * A == 1 else nature, 60))
    assert len(lengths) < 60


@pytest.mark.parametrize("name", ["cyclic", "correlated", "inventory", "queue", "streaming", "garnet"])
def test_worlds_of_the_library(name: str) -> None:
    cmdp = WORLDS[name](np.random.default_rng(1)) if name in {"correlated", "garnet"} else WORLDS[name]()
    natures = ("noisy", "pool", "adaptive", *(("natural", "hostile") if cmdp.scenarios is not None else ()))
    for nature in natures:
        assert share_together(same(standard(cmdp, nature, 60))) > 0.2


def test_a_world_without_a_safe_policy_is_left_to_the_verbs_while_its_margin_is_below_zero() -> None:
    cmdp, rng = world(S=3, H=2), np.random.default_rng(0)
    tables = 0.2 + 0.8 * rng.random((2, 1, *cmdp.shape))  # nobody can meet them
    scene = standard(cmdp, Pool(cmdp, 0, tables), 150)
    lengths = same(scene)
    _, _, end, _ = one_by_one(scene, 150)
    assert end.learner_state.caution.share < 0.0
    assert max(lengths) > 1, "before that they were played together"


def test_more_tables_than_a_memory_holds_are_left_to_the_verbs() -> None:
    cmdp = world()
    lengths = same(standard(cmdp, Pool(cmdp, 0, draw_pool(cmdp, 0, 12), "cyclic"), 120))
    assert set(lengths) == {1}


@pytest.mark.parametrize("switching", ["random", "blocks", "cyclic"])
def test_zero_and_parallel_tables_are_remembered_alike(switching: Any) -> None:
    cmdp = world(n_constraints=2)
    tables = draw_pool(cmdp, 0, 4)
    tables[1] = 0.5 * tables[0]
    tables[2, 0] = 0.0
    tables[3] = 0.0
    same(standard(cmdp, Pool(cmdp, 0, tables, switching), 250))


def test_stretches_end_at_stops() -> None:
    scene = standard(world(), "noisy", 300)
    lengths = same(scene, (7, 100, 101, 250))
    ends = np.cumsum(lengths).tolist()
    assert {7, 100, 101, 250, 300} <= set(ends)


def test_an_adversary_picks_the_costliest_table() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        tables, q = rng.uniform(-1.0, 1.0, (5, 2, 2, 3, 2)), rng.random((2, 3, 2))
        excess = np.tensordot(tables, q, axes=3).max(axis=1)
        assert costliest(tables, q) == int(np.argmax(excess))
    assert costliest(np.ones((3, 1, 1, 1, 1)), np.ones((1, 1, 1))) == 0


def test_where_a_stretch_ends_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = standard(world(), "pool", 200)
    monkeypatch.setattr(loop, "LONG", 3)
    assert max(same(scene)) == 3


def test_a_run_goes_on_from_a_stored_state_as_if_it_had_not_stopped() -> None:
    scene = standard(world(n_constraints=2), "pool", 240)
    _, rows, whole, _ = one_by_one(scene, 240)
    _, _, half, state, _ = together(scene, 130)
    stored = unpack(*pack(half.learner_state), stored_classes(scene.learner))
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    start = loop.Progress(stored, half.totals, half.keys, half.seconds, weights=half.weights)
    rest = list(stretches(scene, start, rng, lambda k: k % 3 == 0))
    assert [row for _, more, _ in rest for row in more] == [row for row in rows if row.episode > 130]
    assert packed(rest[-1].now) == packed(whole)


def test_a_state_is_not_changed_by_the_episodes_after_it() -> None:
    scene = standard(world(), "noisy", 100)
    kept = [
        (now, packed(now)) for _, _, now in stretches(scene, first(scene), np.random.default_rng(0), bool, (20, 50))
    ]
    assert all(packed(now) == then for now, then in kept)
    assert all(one.learner_state.q is not other.learner_state.q for (one, _), (other, _) in pairwise(kept))


def test_a_run_that_is_stopped_again_and_again_is_the_run_that_was_not(tmp_path: Path) -> None:
    registry = Registry.installed()
    spec = registry.run("random_dirichlet", "pool", "ProximalOMDPD.standard", 100, 0)
    whole, parts = RunFolder(tmp_path / "whole", spec.id), RunFolder(tmp_path / "parts", spec.id)
    summary = advance(spec, whole, None, 100.0)
    calls, done = 0, None
    while done is None:
        done, calls = advance(spec, parts, None, 0.0, seconds=0.0), calls + 1
    assert calls > 3
    assert parts.rows().equals(whole.rows())
    assert {**done, "seconds": 0.0} == {**summary, "seconds": 0.0}


UNSOLVED = """
import numpy as np
import test_stretches
from omdpd.play import ahead
from omdpd.solvers import mirror

solve, failed = mirror.solve_step, []

def now_and_then(reference, loss, eta, *rest):
    gap, scale, steps, status, residual = solve(reference, loss, eta, *rest)
    if int(abs(float(loss.sum())) * 1e7 + eta * 1e5) % 3 < 2:
        failed.append(eta)
        status = 2
    return gap, scale, steps, status, residual

mirror.solve_step = ahead.solve_step = now_and_then
for nature in ("noisy", "pool"):
    test_stretches.same(test_stretches.standard(test_stretches.world(2, 2, 2), nature, 12))
print(len(set(failed)))
"""


def test_a_step_that_cannot_be_solved_is_shortened_in_the_same_way() -> None:
    paths = [*sys.path, str(Path(__file__).parent)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", UNSOLVED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2, "steps of several lengths failed"


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda tables: tables.astype(np.float32)], ids=["order", "digits"]
)
def test_tables_of_another_form_are_left_to_the_verbs(change: Any) -> None:
    cmdp = world()
    same(standard(cmdp, Pool(cmdp, 0, change(draw_pool(cmdp, 0, 3))), 40))


def test_a_nature_without_names_for_its_tables_collects_none() -> None:
    cmdp = world()
    lengths = same(standard(cmdp, Fixed(cmdp, repeats=False), 60))
    assert len(lengths) < 60


@dataclass(frozen=True)
class Steeper(Weighting):
    """A weighting of the user's."""

    def potential(self, setting: Any, k: int) -> Any:
        return super().potential(setting, 4 * k)


def test_parts_of_ones_own_are_left_to_the_verbs() -> None:
    cmdp = world()
    learner = replace(ProximalOMDPD.standard(), weighting=Steeper(lagged=True))
    assert Stage.of(Scene(cmdp, NATURES["noisy"](cmdp, 0), learner, 10, {})) is None


class Turning(Pool):
    """A pool that gives other rounds every time it is asked."""

    def draw(self, k: int, occupancy: Any) -> Round:
        return super().draw(k, occupancy)

    def ahead(self, k: int, n: int) -> Any:
        rounds, choices = super().ahead(k, n)
        turn = k % len(rounds)
        return rounds[turn:] + rounds[:turn], (choices - turn) % len(rounds)


def test_other_rounds_at_every_call_are_refused() -> None:
    cmdp = world()
    nature = Turning(cmdp, 0, draw_pool(cmdp, 0, 3), "cyclic")
    with pytest.raises(InvalidInputError, match=r"Turning\.ahead\(1, .*\) must give the same rounds"):
        list(stretches(standard(cmdp, nature, 20), first(standard(cmdp, nature, 20)), np.random.default_rng(0), bool))
    with pytest.raises(ConformanceError, match="gives other rounds than"):
        check_nature(lambda c, seed: Turning(c, seed, draw_pool(c, seed, 3), "cyclic"))


class Louder(Fixed):
    """A nature of the user's that draws something else."""

    def draw(self, k: int, occupancy: Any) -> Round:
        kept = super().draw(k, occupancy)
        return Round(kept.reward, kept.cost, kept.key, "two-point", "two-point")


class Wrong(Fixed):
    """A nature that says something else ahead than it may."""

    said: Any = ()

    def draw(self, k: int, occupancy: Any) -> Round:
        return super().draw(k, occupancy)

    def ahead(self, k: int, n: int) -> Any:
        return (super().draw(k, None),), self.said


@pytest.mark.parametrize("said", [[0, 1], [0, -2], [0], [[0, 0]], [0.0, 0.0], "no"], ids=str)
def test_a_nature_that_says_nonsense_ahead_is_refused(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wrong, "said", said)
    with pytest.raises(InvalidInputError, match=r"Wrong\.ahead\(3, 2\) must give its rounds and 2 places among them"):
        rounds_ahead(Wrong(world()), 3, 2)


def test_what_is_not_the_usual_case_has_no_stage() -> None:
    cmdp = world()
    usual = standard(cmdp, "noisy", 10)
    assert Stage.of(usual) is not None
    assert rounds_ahead(Louder(cmdp), 0, 1) is None
    for other in (
        standard(cmdp, Louder(cmdp), 10),
        standard(cmdp, "drifting", 10),
        standard(cmdp, "noisy", 10, lagged=False),
        standard(cmdp, NATURES["noisy"](cmdp, 0, noise="beta"), 10),
        standard(cmdp, "noisy", 10, layout="graph"),
        Scene(cmdp, usual.nature, ProximalOMDPD.cautious(), 10, {}),
        Scene(cmdp, usual.nature, usual.learner, 10, {"mine": lambda *_: 1.0}),
        Scene(cmdp, usual.nature, usual.learner, 10, {}, episodes_known=False),
    ):
        assert Stage.of(other) is None


@pytest.mark.parametrize("nature", ["drifting", "independent", "unrevealed"])
def test_other_natures_are_played_by_the_verbs(nature: str) -> None:
    assert set(same(standard(world(), nature, 30))) == {1}
