import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, make_dataclass

import numpy as np
import numpy.typing as npt
import pytest
from typing_extensions import TypeAliasType

from omdpd.learners.protocol import stored_classes
from omdpd.play.scene import with_known_facts
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import Setting
from omdpd.storage.packing import classes_of, pack, unpack
from tests.references.instances import bandit, random_cmdp, revealed
from tests.references.named import LEARNERS

H, S, A = 4, 3, 2


@dataclass(frozen=True, eq=False)
class Leaf:
    table: np.ndarray
    label: str


@dataclass(frozen=True)
class Branch:
    leaves: tuple[Leaf, ...]
    number: float
    count: int
    flag: bool
    nothing: None


CLASSES = {"Leaf": Leaf, "Branch": Branch}


def through_json(value, classes):
    tree, arrays = pack(value)
    return unpack(json.loads(json.dumps(tree, allow_nan=False)), arrays, classes)


def identical(a, b):
    """Equality to the last bit of two states, however deep."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a, b, strict=True))
    if is_dataclass(a):
        return type(a) is type(b) and all(identical(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return a == b


def test_a_tree_of_values_comes_back_to_the_last_bit():
    value = Branch((Leaf(np.array([0.1, 1e-300]), "x"), Leaf(np.zeros((0, 2)), "y")), 0.1 + 0.2, 2**70, True, None)
    assert identical(through_json(value, CLASSES), value)


def test_numpy_scalars_become_plain_numbers():
    assert through_json((np.float64(0.1), np.int64(3), np.bool_(True)), {}) == (0.1, 3, True)


def test_what_may_come_back_is_read_off_the_type_hints():
    assert classes_of(Branch, "it") == CLASSES
    assert classes_of(tuple[int, Leaf | None], "it") == {"Leaf": Leaf}


def test_a_name_for_a_type_is_what_it_stands_for():
    # As NumPy's own names of arrays are from 2.5 on, which needs Python 3.12.
    leaves = TypeAliasType("leaves", tuple[Leaf, ...] | None)
    assert classes_of(tuple[int, leaves], "it") == {"Leaf": Leaf}
    table = TypeAliasType("table", npt.NDArray[np.float64])
    assert classes_of(tuple[table, npt.ArrayLike | None], "it") == {}
    with pytest.raises(InvalidInputError, match="cannot be stored"):
        classes_of(TypeAliasType("bag", set), "it")


@pytest.mark.parametrize("hint", [dict, list[int], object, Callable, set])
def test_a_type_that_cannot_be_stored_is_refused_by_name(hint):
    with pytest.raises(InvalidInputError, match=r"it is of type .* which cannot be stored"):
        classes_of(tuple[Branch, hint], "it")


def test_two_classes_of_one_name_are_refused():
    other = make_dataclass("Leaf", [("x", int)])
    with pytest.raises(InvalidInputError, match="two classes named Leaf"):
        classes_of(tuple[Leaf, other], "it")


def test_a_class_that_is_not_listed_is_refused_by_name():
    tree, arrays = pack(Leaf(np.zeros(2), "x"))
    with pytest.raises(InvalidInputError, match=r"Leaf.* is not a known class"):
        unpack(tree, arrays, {})


def test_a_stored_state_of_another_version_is_refused():
    tree, arrays = pack(Leaf(np.zeros(2), "x"))
    del tree["fields"]["label"]
    with pytest.raises(InvalidInputError, match="does not have the fields of this version"):
        unpack(tree, arrays, CLASSES)


def test_a_missing_array_is_named():
    tree, _ = pack(Leaf(np.zeros(2), "x"))
    with pytest.raises(InvalidInputError, match="no array 'a0'"):
        unpack(tree, {}, CLASSES)


@pytest.mark.parametrize("value", [object(), {"a": 1}, {1, 2}, lambda: None])
def test_what_is_no_plain_data_is_not_packed(value):
    with pytest.raises(TypeError, match="a state cannot hold a"):
        pack(value)


@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learners_state_comes_back_to_the_last_bit(name, kind):
    cmdp, rng = random_cmdp(np.random.default_rng(0), H, S, A, budget=0.4), np.random.default_rng(1)
    try:
        learner = with_known_facts(LEARNERS[name]().build(), cmdp, kind)
    except InvalidInputError:
        assert kind not in LEARNERS[name]().build().card.feedback or name == "Oracle"
        return
    state = learner.init(cmdp.setting(20, kind))
    for _ in range(3):
        policy = learner.policy(state)
        met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, cmdp.excess)
        state = learner.update(state, met)
    again = through_json(state, stored_classes(learner))
    assert identical(again, state)
    policy = learner.policy(state)
    met = bandit(rng, cmdp, policy) if kind == "bandit" else revealed(rng, cmdp, policy, -cmdp.excess)
    assert identical(learner.update(again, met), learner.update(state, met))


def test_a_setting_comes_back_to_the_last_bit_whatever_its_initial_law():
    """Scaling a law to sum to one is not idempotent in the last bit, so a stored law must not be scaled again."""
    changed = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n_states = int(rng.integers(2, 12))
        setting = Setting(2, n_states, 2, initial=rng.dirichlet(np.ones(n_states)))
        if not identical(through_json(setting, {"Setting": Setting}), setting):
            changed.append(seed)
    assert changed == []
