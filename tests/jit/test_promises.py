"""Without a compiler the solvers keep the promises they make to it, and give the answers of the compiled ones."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from benchmarks import fuzz
from omdpd.solvers.compiled.box_step import slots as slot
from tests.references.promises import BrokenPromiseError, assume_distinct, borrow, flat, outlive

TOL = 1e-10
# Small draws of `fuzz`, (seed, KL): few and many hinges, several steps.
SMALL = {
    "box": [(37, False), (38, False), (290, False), (18, True), (39, True)],
    "kernel": [(428, False), (715, False), (78, True), (153, True)],
}
# Run in a process of its own, since Numba decides when it is imported.  `large` sends even two states the way of many:
# blocks of one step, products by BLAS.
WITHOUT_COMPILER = """
import pickle, sys
import numpy as np
from benchmarks import fuzz
from omdpd.experiments.first_use import compile_for, runs_of
from omdpd.experiments.registry import Registry
from tests.references.promises import check_promises

region, draws, large, tol = pickle.load(sys.stdin.buffer)
learners = runs_of(Registry.installed(), ["OMDPD.tuned", "ProximalOMDPD.standard"])
compile_for(learners, sys.exit)  # has nothing to say where nothing is compiled
check_promises()
for name, module in list(sys.modules.items()):
    for threshold in ("BLAS_STATES", "BLAS_FROM"):
        if large and name.startswith("omdpd.solvers.compiled") and hasattr(module, threshold):
            setattr(module, threshold, 2)
with np.errstate(all="ignore"):
    outcomes = [fuzz.run(fuzz.draw(seed, region, kl), region, tol) for seed, kl in draws]
sys.stdout.buffer.write(pickle.dumps([(*map(np.asarray, outcome),) for outcome in outcomes]))
"""


def without_compiler(region, large):
    """The outcomes of the small draws in plain Python."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = pickle.dumps((region, SMALL[region], large, TOL))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER], input=asked, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return [fuzz.Outcome(*outcome) for outcome in pickle.loads(done.stdout)]  # noqa: S301, our own process


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("region", ["box", "kernel"])
def test_plain_python_keeps_every_promise_and_finds_the_answer_of_the_compiled_solver(region, large):
    for (seed, kl), plain in zip(SMALL[region], without_compiler(region, large), strict=True):
        compiled = fuzz.run(fuzz.draw(seed, region, kl), region, TOL)
        assert plain.status == compiled.status == 0
        assert plain.iterations == compiled.iterations
        # Sums are added in another order: rounding, which the conditioning of a problem magnifies.
        np.testing.assert_allclose(plain.q, compiled.q, atol=1e-9)


def shifted(source, target):
    """target[n] = source[n], under the promise."""
    assume_distinct()
    for n in range(target.size):
        target[n] = source[n]


def doubled(E, target):
    """target = twice the lower bounds, under the promise."""
    assume_distinct()
    for n in range(target.size):
        target[n] = 2.0 * E[slot.LOWER, n]


def test_arrays_that_overlap_break_the_promise():
    memory = np.arange(8.0)
    shifted(memory[:4], memory[4:])
    with pytest.raises(BrokenPromiseError, match=r"shifted writes target.*through source"):
        shifted(memory[:4], memory[2:6])


def test_a_slot_that_is_read_where_it_is_must_not_be_handed_over_to_be_written():
    E = np.ones((slot.ENTRY_SLOTS, 3))
    doubled(E, E[slot.WIDTH])
    with pytest.raises(BrokenPromiseError, match=r"doubled writes target.*E\[slot.LOWER\]"):
        doubled(E, E[slot.LOWER])


class Pair(NamedTuple):
    one: np.ndarray
    two: np.ndarray


def total(argument, name_owner):
    """The sum of an argument and an array of one's own, both borrowed."""
    own = Pair(argument, np.ones(2))
    lent = borrow(own)
    result = lent.one.sum() + lent.two.sum()
    outlive(own if name_owner else None)
    return result


def test_what_is_borrowed_must_outlive_its_use():
    assert total(np.ones(3), True) == 5.0
    with pytest.raises(BrokenPromiseError, match="total: the owner of what lent borrows"):
        total(np.ones(3), False)


def test_what_an_argument_borrows_is_the_business_of_the_caller():
    own = np.ones(3)
    lent = borrow(own)
    assert total(lent, True) == 5.0
    outlive(own)


def test_borrowing_without_outlive_breaks_the_promise():
    with pytest.raises(BrokenPromiseError, match="does not call outlive"):
        borrow(np.ones(2))


def test_a_borrowed_array_is_refused_once_its_owner_is_gone():
    def orphan():
        own = np.ones(2)
        lent = borrow(own)
        outlive(own)
        return lent

    with pytest.raises(BrokenPromiseError, match="borrowed from was gone"):
        orphan()[0]


def table_of_slots():
    """The table in the docstring of `slots`: per slot, the words in its columns "written by" and "read by"."""
    found, words, inside = {}, set(), False
    for line in slot.__doc__.splitlines():
        inside = line.startswith("slot ") or (inside and line != "")
        if inside and line[:23].strip():
            words = found.setdefault(line[:23].strip("= "), set())
        if inside:
            words |= set(line[66:].replace(",", " ").split())
    return {name: words for name, words in found.items() if name != "slot"}


def test_the_table_of_slots_is_complete_and_names_whoever_touches_one():
    table = table_of_slots()
    assert set(table) == {name for name in vars(slot) if name.isupper() and not name.endswith("_SLOTS")}
    known = set()
    for file in Path(inspect.getfile(slot)).parent.glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                known |= {file.stem, function.name}
                # The entry and what is only glue hand slots on.
                if not re.search("glue|entry", "".join(map(ast.unparse, function.decorator_list))):
                    for name in re.findall(r"\bslot\.([A-Z0-9_]+)", ast.unparse(function)):
                        assert name not in table or {file.stem, function.name} & table[name], (name, function.name)
    assert set().union(*table.values()) <= known


def test_only_entries_that_lie_one_after_another_are_one_vector():
    table = np.arange(24.0).reshape(2, 3, 4)
    flat(table)[5] = -1.0
    assert table[0, 1, 1] == -1.0
    with pytest.raises(BrokenPromiseError, match="one after another"):
        flat(table[..., 1:])


def test_functions_without_a_compiler_check_what_they_promise_once_they_are_told_to():
    told = "from omdpd.solvers.compiled.box_step import laws, solve; from tests.references import promises; "
    told += "promises.check_promises(); "
    told += "print(laws.assume_distinct is promises.assume_distinct, solve.borrow is promises.borrow)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
