"""Make machine code of Numba's cache ready to be shipped; `tools/build_wheel.py` runs this where the code was compiled.

    python tools/ship_code.py FOLDER    # .../jit/machine_code of the package that is about to be built

Copies what OMDPD_CACHE_DIR holds for this version of the sources into a folder of its own, without the listings that
Numba keeps for people (a quarter of it, with paths of this machine), and writes about.json: what it was made with and
for.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import msgspec
import numba
from numba.core.serialize import dumps

from omdpd.jit.cache import kernel_folder
from omdpd.jit.shipped import About, facts, sha256

# Where the listing is in what Numba keeps of a function.
LISTING = 6
# Where what it was compiled for is.
SIGNATURE = 3


def without_listing(content: bytes) -> bytes:
    """What Numba keeps of a function, without the listing."""
    payload = list(pickle.loads(content))  # noqa: S301  # our own, just compiled
    if not isinstance(payload[LISTING], str):
        sys.exit(f"ship_code: Numba {numba.__version__} keeps {type(payload[LISTING]).__name__} where the listing was")
    payload[LISTING] = ""
    return dumps(tuple(payload))


def check_index(index: Path) -> None:
    """End with a sentence unless every signature of a function has code of its own that was compiled for it."""
    with index.open("rb") as file:
        pickle.load(file)  # noqa: S301  # the version, then what it indexes
        _, places = pickle.loads(file.read())  # noqa: S301
    for (signature, *_), name in places.items():
        payload = pickle.loads((index.parent / name).read_bytes())  # noqa: S301
        wanted = getattr(signature, "args", signature)  # a function that is declared with its types is kept under them
        if tuple(payload[SIGNATURE].args) != tuple(wanted):
            sys.exit(f"ship_code: {index} names {name} for {signature}, but it was compiled for {payload[SIGNATURE]}")
    if len(set(places.values())) != len(places):
        sys.exit(f"ship_code: {index} names one file for two signatures")


def main(shipped: Path) -> None:
    """Check and copy every file, and describe them."""
    kernels, made_with = kernel_folder(), facts()
    for index in kernels.rglob("*.nbi"):
        check_index(index)
    version = made_with["python"].split()[-1]
    folder = shipped / f"python{version}-numba{numba.__version__}-{numba.config.CPU_NAME}"
    hashes = {}
    for file in sorted(kernels.rglob("*.nb[ic]")):
        name, content = file.relative_to(kernels), file.read_bytes()
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(without_listing(content) if file.suffix == ".nbc" else content)
        hashes[name.as_posix()] = sha256(copy)
    about = About(made_with, numba.config.CPU_NAME, numba.config.CPU_FEATURES, hashes)
    (folder / "about.json").write_bytes(msgspec.json.format(msgspec.json.encode(about)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
