"""What Numba compiled for other sources than these is forgotten before anything looks at it.

Numba keeps machine code beside the sources and notices when a function's own file changed, but not when a function that
it calls did; and a type of an earlier version that no longer exists makes its index unreadable.  So a change of any
source here makes everything stale.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
# What the kept machine code was compiled from.
STAMP = HERE / "__pycache__" / "sources.sha256"


def forget_stale(folder: Path = HERE, stamp: Path = STAMP) -> bool:
    """Remove the machine code under a folder if it is not of these sources; whether it was so.

    A folder that cannot be written into is left alone: Numba then keeps its code elsewhere, by the sources' place.
    """
    known = _fingerprint(folder)
    with suppress(OSError):
        if stamp.read_text() == known:
            return False
    with suppress(OSError):
        for file in folder.rglob("__pycache__/*.nb[ic]"):
            file.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(known)
    return True


def _fingerprint(folder: Path) -> str:
    """A hash of the sources' names, sizes and times."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        facts = file.stat()
        digest.update(f"{file.relative_to(folder)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
