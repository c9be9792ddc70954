"""Build sdist and wheel into a folder; the wheel has machine code, so that nobody whom it fits compiles at first use.

    python -m tools.build_wheel [FOLDER] [--with PYTHON]... [--learners NAMES]    # `make wheel`: into dist

The machine code is made in a fresh environment of each PYTHON (this one if none is named) with what pip installs today,
since it is used only with the same minor version of Python and the same Numba and llvmlite.  It takes two or three
minutes for each; NAMES makes it that of some learners only.  A wheel has no code for other versions, systems and
processors than these; there everything is compiled at first use, as it is from a source distribution.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
INSIDE = Path("src/omdpd/jit/machine_code")
# A processor that nearly all machines of a kind include, and its features one by one: they are what is looked for on a
# user's machine.  x86-64-v3 is what Intel and AMD have sold since 2013 and 2015, with exceptions.
V3 = "cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
PROCESSORS = {"x86_64": ("x86-64-v3", ",".join(f"+{feature}" for feature in V3.split()))}


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command; what it printed, or an end with what it said."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def outside() -> dict[str, str]:
    """The environment without what would lead to this checkout or change how Numba compiles."""
    ours = ("PYTHONPATH", "NUMBA_", "OMDPD_")
    return {name: text for name, text in os.environ.items() if not name.startswith(ours)}


def unpacked_sdist(folder: Path) -> tuple[Path, Path]:
    """The sdist, and what is in it."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "tree", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return sdist, folder / "tree" / sdist.name.removesuffix(".tar.gz")


def environment(folder: Path, interpreter: str, package: Path) -> Path:
    """The Python of a fresh environment with a package, source tree or wheel, and all that it needs."""
    run(interpreter, "-m", "venv", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary=:all:")
    run(*pip, package, cwd=folder.parent, env=outside())
    return python


def add_machine_code(tree: Path, python: Path, cache: Path, learners: str = "") -> None:
    """Compile what learners (all if none is named) call, and put it into the tree that a wheel is built from."""
    if platform.machine() not in PROCESSORS:
        print(f"no processor is known that all machines of the kind {platform.machine()} include: no machine code")
        return
    name, features = PROCESSORS[platform.machine()]
    env = outside() | {"OMDPD_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    env["NUMBA_DISABLE_INTEL_SVML"] = "1"  # a library that most environments do not have
    run(python, "-m", "omdpd", "warm-up", *(("--learners", learners) if learners else ()), cwd=cache.parent, env=env)
    run(python, ROOT / "tools" / "ship_code.py", tree / INSIDE, cwd=cache.parent, env=env)


def built_wheel(tree: Path, folder: Path) -> Path:
    """The wheel of a source tree."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, tree, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main(folder: Path, interpreters: Sequence[str], learners: str) -> None:
    """Everything in a temporary folder but what is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="wheel-") as name:
        work = Path(name)
        sdist, tree = unpacked_sdist(work)
        for k, interpreter in enumerate(interpreters):
            add_machine_code(tree, environment(work / f"env{k}", interpreter, tree), work / f"cache{k}", learners)
        for old in (*folder.glob("omdpd-*.whl"), *folder.glob("omdpd-*.tar.gz")):
            old.unlink()
        for made in (sdist, built_wheel(tree, work)):
            shutil.copy(made, folder)
            print(f"{folder / made.name}: {(folder / made.name).stat().st_size / 1e6:.1f} MB")
        print("machine code:", *sorted(about.parent.name for about in (tree / INSIDE).glob("*/about.json")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build sdist and wheel, with machine code.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--with", dest="interpreters", action="append", metavar="PYTHON")
    parser.add_argument("--learners", default="")
    given = parser.parse_args()
    main(given.folder.resolve(), given.interpreters or [sys.executable], given.learners)
