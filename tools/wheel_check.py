"""Build sdist and wheel, look into them, install the wheel into a clean environment elsewhere, use it, and remove it.

    python tools/wheel_check.py [PYTHON]    # `make wheel-check WITH=PYTHON`; a minute or two, most of it pip's

PYTHON is the interpreter of the clean environment, this one if none is named.

The wheel is built from the sdist, so both are known to be whole.  Whatever the environment needs comes from the package
index, as for any user.  Compiled kernels are shared with this user's cache: they are keyed by content.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import omdpd
from omdpd.solvers.compiled.cache import cache_folder

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "omdpd"
# The paper's page in the small: two learners, few episodes.
COMMAND = (
    "paper --quick --episodes 50 --seeds 1 --learners ProximalOMDPD.standard,Uniform --jobs 1 --report --out quick"
)
MADE = ("quick/figure.png", "quick/report.html", "quick/summary.csv")


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command; what it printed, or an end with what it said."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def expected(condition: bool, sentence: str) -> None:
    """End with a sentence unless a condition holds."""
    if not condition:
        sys.exit(f"wheel-check: {sentence}")


def built(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def look_into(sdist: Path, wheel: Path) -> None:
    """Everything of the package is in the wheel and nothing else; its metadata are those of the project."""
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(place).decode())
    files = (file for file in SOURCES.rglob("*") if file.is_file() and file.suffix != ".pyc")
    wanted = {f"omdpd/{file.relative_to(SOURCES).as_posix()}" for file in files}
    shipped = {name for name in names if ".dist-info/" not in name}
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


def use(wheel: Path, folder: Path, interpreter: str) -> None:
    """Install the wheel, run a command of it outside the tree, and remove it again without a trace."""
    run(interpreter, "-m", "venv", "clean", cwd=folder)
    python, home = folder / "clean" / "bin" / "python", folder / "home"
    home.mkdir()
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--only-binary=:all:", wheel, cwd=folder, env=env)
    env |= {"HOME": str(home), "OMDPD_CACHE_DIR": str(cache_folder())}
    where = run(python, "-c", "import omdpd; print(omdpd.__file__, omdpd.__version__)", cwd=folder, env=env)
    expected(where.startswith(str(folder.resolve())) and where.strip().endswith(omdpd.__version__), f"imported {where}")
    run(folder / "clean" / "bin" / "omdpd", *COMMAND.split(), cwd=folder, env=env)
    for file in MADE:
        expected((folder / file).stat().st_size > 1000, f"{file} is nearly empty")
    size = run("du", "-sm", folder / "clean", cwd=folder).split()[0]
    own = sum(file.stat().st_size for file in (folder / "clean").rglob("omdpd/**/*") if file.suffix != ".pyc")
    run(*pip, "uninstall", "--quiet", "--yes", "omdpd", cwd=folder, env=env)
    left = [path for place in (folder / "clean", home) for path in place.rglob("*omdpd*")]
    expected(not left, f"uninstalled, it leaves {left}")
    print(f"installed: {own / 1e6:.1f} MB of our own, {size} MB with all it needs and Python's pip")


def main(interpreter: str) -> None:
    """Everything in a temporary folder."""
    with TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        sdist, wheel = built(folder)
        look_into(sdist, wheel)
        print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB; {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        use(wheel, folder, interpreter)
        version = run(interpreter, "--version", cwd=folder).strip()
    print(f"with {version} the wheel installs, makes the paper's page and uninstalls cleanly")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
