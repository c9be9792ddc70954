"""Whether the pages of the built site show what their examples were to show: ``python -m tools.site_check FOLDER``.

A build is content with an example that ran; that its output is a picture, and not the name of one, is looked up here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

# What an output is when it is not what was wanted, and what that means.
FAULTS = {
    "&lt;Figure size": "a figure is named instead of shown (show it, or use omdpd.report.canvas.new_figure)",
    "command not found": "a command was not found",
    "Traceback (most recent call last)": "an example failed",
    "omdpd: compiling": "what was compiled during the build is told, with a folder of whoever built it",
}


def faults(site: Path) -> Iterator[str]:
    """A sentence for every page and fault, the site's own pages of code left out."""
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        if name.parts[0] == "_modules":
            continue
        text = page.read_text(encoding="utf-8")
        for fragment, meaning in FAULTS.items():
            if fragment in text:
                yield f"{name}: {meaning}"


def main(folder: str) -> int:
    """Say what is wrong, and how many pages there are."""
    site = Path(folder)
    if not (site / "index.html").exists():
        print(f"{site} holds no site: make docs builds one")
        return 2
    found = list(faults(site))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
