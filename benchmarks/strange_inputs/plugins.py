"""Plugin files that raise, exit, name nonsense, or make parts that misbehave once they are built or played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.strange_inputs import Case
from benchmarks.strange_inputs.specs import command

# What stands in a file by itself.
SOURCES = (
    "", "\0", "\xff", "def f(", "import nothing_of_this_name", "1 / 0", "raise SystemExit(0)",
    "raise SystemExit('bye')", "import sys; sys.exit(0)", "exit()", "quit(1)", "raise GeneratorExit",
    "raise StopIteration", "open('/none')", "raise RecursionError", "def f(): f()\nf()",
    "x = " + "(" * 300 + ")" * 300, "x = " + "9" * 5000,
    "class E(Exception):\n def __str__(self): raise KeyError\nraise E", "raise Exception('a\\nb\\x1b[2J')",
    "LEARNERS = 3", "LEARNERS = []", "LEARNERS = {}", "LEARNERS = {1: print}", "LEARNERS = {'': print}",
    "LEARNERS = {'mine': 3}", "LEARNERS = {'mine': None}", "LEARNERS = {'Uniform': print}",
    "LEARNERS = {'a\\0b': print}", "class M(dict):\n def items(self): raise SystemExit(0)\nLEARNERS = M(mine=print)",
    "class M(dict):\n def __iter__(self): raise ValueError('x')\nLEARNERS = M(mine=print)", "WORLDS = {'mine': 1}",
    "NATURES = {'mine': lambda: 1}", "__name__ = None", "# -*- coding: nonsense -*-\n",
    "# -*- coding: utf-16 -*-\nx = 1", "__file__ = 3\nLEARNERS = {'mine': __import__('sys').exit}",
)  # fmt: skip
# Factories of a learner `mine`: their parameters and their bodies.
PARAMETERS = (
    "", "*a", "**k", "a", "a, b=1", "a: 'nothing' = 1", "a: nothing = 1", "a: object = 1", "name='x'", "rng=1",
    "a=print", "a: list = []", "a: dict = {}", "a: complex = 1j", "a=float('nan')", "a=10**30", "*, a=1", "a, /",
)  # fmt: skip
BODIES = (
    "return None", "return 3", "return Uniform", "return print", "raise SystemExit(0)", "raise KeyError('x')",
    "raise StopIteration", "raise MemoryErrorLike()", "raise RecursionError", "1 / 0", "return mine()", "yield 1",
    "import sys; sys.exit('bye')", "raise Exception('a\\nb')",
)  # fmt: skip
# What a learner of `mine` does in one of its verbs.
VERBS = {"init": "setting", "policy": "state", "update": "state, feedback", "report": "state"}
DEEDS = (
    "raise SystemExit(0)", "raise KeyError('x')", "return None", "return 3", "return 'x'", "return float('nan')",
    "import numpy; return numpy.full((1,), numpy.nan)", "return []", "raise StopIteration",
)  # fmt: skip
# Factories of a world `mine` and of a nature `mine`.
WORLDS = (
    "return None", "return 3", "raise SystemExit(0)", "raise KeyError('x')", "return CMDP",
    "return CMDP.from_arrays([[[1.0]]], [[2.0]], [[0.0]], horizon=2)", "return CMDP.from_arrays(None, None, None)",
    "return CMDP.from_arrays([[['x']]], [[0.0]], [[0.0]], horizon=2)",
    "return CMDP.from_arrays([[[float('nan')]]], [[0.0]], [[0.0]], horizon=2)",
)  # fmt: skip
NATURES = (
    "return None", "return 3", "raise SystemExit(0)", "raise KeyError('x')", "return fixed.make",
    "return fixed.make(None, 0)", "made = fixed.make(cmdp, seed); made.draw",
)  # fmt: skip
HEAD = "from omdpd import CMDP, Uniform\nfrom omdpd.natures import fixed\n"


def cases(folder: Path) -> Iterator[Case]:
    """Each file is listed, tried and played."""
    spec = folder / "x.toml"
    for i, (kind, source) in enumerate(_sources()):
        file = folder / f"plugin{i}.py"
        file.write_bytes(source.encode("latin-1", "replace"))
        parts = {"worlds": "cyclic", "natures": "noisy", "learners": "Uniform"} | {kind: "mine"}
        content = "episodes = 3\nseeds = 1\n" + "".join(f'{k} = [{{ name = "{v}" }}]\n' for k, v in parts.items())

        def call(words: list[str], content: str = content, file: Path = file) -> None:
            spec.write_text(content)
            command([*words, "--plugin", str(file)])

        out = str(folder / f"out{i}")
        shown = f"{kind}: {source.removeprefix(HEAD)[:60]!r}"
        yield Case(f"dry run, {shown}", lambda call=call: call(["run", str(spec), "--dry-run"]))
        words = ["run", str(spec), "--jobs", "1", "--no-figures", "--out", out]
        yield Case(f"run, {shown}", lambda call=call, words=words: call(words))
        if i % 5 == 0:
            yield Case(f"list, {shown}", lambda call=call: call(["list"]))


def _sources() -> Iterator[tuple[str, str]]:
    for source in SOURCES:
        yield "learners", source
    for parameters in PARAMETERS:
        yield "learners", HEAD + f"def mine({parameters}):\n    return Uniform()\nLEARNERS = {{'mine': mine}}"
    for body in BODIES:
        yield "learners", HEAD + f"def mine():\n    {body}\nLEARNERS = {{'mine': mine}}"
    for verb, given in VERBS.items():
        for deed in DEEDS:
            made = f"class Mine(Uniform):\n    def {verb}(self, {given}):\n        {deed}\n"
            yield "learners", HEAD + made + "def mine():\n    return Mine()\nLEARNERS = {'mine': mine}"
    for body in WORLDS:
        yield "worlds", HEAD + f"def mine():\n    {body}\nWORLDS = {{'mine': mine}}"
    for body in NATURES:
        yield "natures", HEAD + f"def mine(cmdp, seed):\n    {body}\nNATURES = {{'mine': mine}}"
