"""Build sdist and wheel, look into them, install the wheel into a clean environment elsewhere, use it, and remove it.

    python -m tools.wheel_check [PYTHON] [--learners NAMES]    # `make wheel-check WITH=PYTHON`; about three minutes

PYTHON is the interpreter of the clean environment, this one if none is named.  The wheel has machine code, made there
for the learners named (the default one and Uniform; '' is all of them, as in `make wheel`), and is built from the
sdist, so both are known to be whole.  Whatever the environment needs comes from the package index, as for any user.
Compiled code is kept in a folder that is empty at first, and must be so after README's example.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tarfile
import tomllib
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import omdpd
from tools.build_wheel import INSIDE, ROOT, add_machine_code, built_wheel, environment, outside, run, unpacked_sdist

SOURCES = ROOT / "src" / "omdpd"
LEARNERS = "ProximalOMDPD.standard,Uniform"
# The paper's page in the small: two learners, few episodes.
COMMAND = f"paper --quick --episodes 50 --seeds 1 --learners {LEARNERS} --jobs 1 --report --out quick"
MADE, FIGURE = ("quick/report.html", "quick/summary.csv"), "quick/figure.png"
# Printed after README's first example: the processor time it took.
TIMES = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{used.ru_utime + used.ru_stime:.1f}")
"""


def expected(condition: bool, sentence: str) -> None:
    """End with a sentence unless a condition holds."""
    if not condition:
        sys.exit(f"wheel-check: {sentence}")


def look_into(sdist: Path, wheel: Path) -> bool:
    """Everything of the package is in the wheel, and nothing else but machine code; its metadata are the project's.

    Whether there is machine code in it: none is made for some machines.
    """
    code = INSIDE.relative_to("src").as_posix()
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(place).decode())
        described = {name for name in names if name.startswith(code) and name.endswith("about.json")}
        made = {
            f"{Path(place).parent}/{name}" for place in described for name in json.loads(archive.read(place))["files"]
        }
    machine_code = {name for name in names if name.startswith(code)}
    expected(machine_code == made | described, "the wheel's machine code is not what about.json says")
    files = (file for file in SOURCES.rglob("*") if file.is_file() and file.suffix != ".pyc")
    wanted = {f"omdpd/{file.relative_to(SOURCES).as_posix()}" for file in files}
    shipped = {name for name in names - machine_code if ".dist-info/" not in name}
    expected(shipped == wanted, f"the wheel and src/omdpd differ in {sorted(shipped ^ wanted)}")
    expected("omdpd/py.typed" in shipped, "py.typed is not in the wheel")
    expected(any(name.endswith("licenses/LICENSE") for name in names), "LICENSE is not in the wheel")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    expected(about["Version"] == omdpd.__version__, f"the wheel says version {about['Version']}")
    expected(set(about.get_all("Classifier")) == set(project["classifiers"]), "the wheel has other classifiers")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "Makefile",
        "src/omdpd/py.typed",
        "tests/test_readme.py",
    ):
        expected(name in inside, f"{name} is not in the sdist")
    return bool(made)


def use(wheel: Path, folder: Path, python: Path, brings_code: bool, everything: bool) -> None:
    """Install the wheel, use it outside the tree, and remove it again without a trace.

    If it brings code README's example must compile nothing, and the paper's page neither if that is of `everything`.
    """
    home, cache = folder / "home", folder / "cache"
    home.mkdir()
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--force-reinstall", "--no-deps", wheel, cwd=folder, env=outside())
    env = outside() | {"HOME": str(home), "OMDPD_CACHE_DIR": str(cache)}
    where = run(python, "-c", "import omdpd; print(omdpd.__file__, omdpd.__version__)", cwd=folder, env=env)
    expected(where.startswith(str(folder.resolve())) and where.strip().endswith(omdpd.__version__), f"imported {where}")
    size = run("du", "-sm", folder / "clean", cwd=folder).split()[0]
    run(python.with_name("omdpd"), *COMMAND.split(), cwd=folder, env=env)
    for file in MADE:
        expected((folder / file).stat().st_size > 1000, f"{file} is nearly empty")
    expected(not (folder / FIGURE).exists(), "a figure was drawn without Matplotlib")
    run(*pip, "install", "--quiet", "--only-binary=:all:", f"{wheel}[plot]", cwd=folder, env=outside())
    run(python.with_name("omdpd"), *COMMAND.split(), cwd=folder, env=env)
    expected((folder / FIGURE).stat().st_size > 1000, f"{FIGURE} is nearly empty")
    compiled = sorted(file.name for file in cache.rglob("*.nbc"))
    expected(
        not (compiled and brings_code and everything),
        f"the paper's page compiled {compiled} although machine code came along",
    )
    print(f"the paper's page compiles {len(compiled)} functions")
    shutil.rmtree(cache, ignore_errors=True)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    seconds = run(python, "-c", example + TIMES, cwd=folder, env=env).split()[-1]
    compiled = sorted(file.name for file in cache.rglob("*.nbc"))
    expected(not (compiled and brings_code), f"README's example compiled {compiled} although machine code came along")
    print(f"README's first example compiles {len(compiled)} functions and takes {seconds} s of processor time")
    own = sum(file.stat().st_size for file in (folder / "clean").rglob("omdpd/**/*") if file.suffix != ".pyc")
    run(*pip, "uninstall", "--quiet", "--yes", "omdpd", cwd=folder, env=env)
    left = [path for place in (folder / "clean", home) for path in place.rglob("*omdpd*")]
    expected(not left, f"uninstalled, it leaves {left}")
    print(f"installed: {own / 1e6:.1f} MB of our own, {size} MB with all it needs and Python's pip, without extras")


def main(interpreter: str, learners: str) -> None:
    """Everything in a temporary folder."""
    with TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        sdist, tree = unpacked_sdist(folder)
        python = environment(folder / "clean", interpreter, tree)
        add_machine_code(tree, python, folder / "compiled", learners)
        wheel = built_wheel(tree, folder)
        brings_code = look_into(sdist, wheel)
        print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB; {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        use(wheel, folder, python, brings_code, everything=not learners)
        version = run(interpreter, "--version", cwd=folder).strip()
    print(f"with {version} the wheel installs, makes the paper's page and uninstalls cleanly")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build a wheel, install it elsewhere, use it and remove it.")
    parser.add_argument("interpreter", nargs="?", default=sys.executable)
    parser.add_argument("--learners", default=LEARNERS)
    given = parser.parse_args()
    main(given.interpreter, given.learners)
