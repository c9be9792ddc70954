"""Renew or check the libraries that the report page and the site draw with, pinned in `vendor/pins.json`.

python tools/vendor.py            fetch the pinned versions from the npm registry and check them
python tools/vendor.py --check    check the files that are here, without the network
python tools/vendor.py --newest   fetch the newest versions and pin them
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENDOR = ROOT / "src" / "omdpd" / "report" / "page" / "vendor"
PINS = VENDOR / "pins.json"
# The fonts that KaTeX sets formulas in.
FONTS = (
    *("AMS-Regular", "Caligraphic-Bold", "Caligraphic-Regular", "Fraktur-Bold", "Fraktur-Regular", "Script-Regular"),
    *("Main-Bold", "Main-BoldItalic", "Main-Italic", "Main-Regular", "Math-BoldItalic", "Math-Italic"),
    *("SansSerif-Bold", "SansSerif-Italic", "SansSerif-Regular", "Typewriter-Regular"),
    *(f"Size{number}-Regular" for number in (1, 2, 3, 4)),
)
# What is taken out of each package, and what it is called here; packages of the site have a folder of their own there.
FOLDERS = {"katex": ROOT / "docs" / "_static" / "katex"}
PACKAGES = {
    "d3": {"dist/d3.min.js": "d3.min.js", "LICENSE": "d3.LICENSE"},
    "@observablehq/plot": {"dist/plot.umd.min.js": "plot.min.js", "LICENSE": "plot.LICENSE"},
    "katex": {
        **{
            f"dist/{name}": name
            for name in ("katex.min.js", "katex.min.css", *(f"fonts/KaTeX_{font}.woff2" for font in FONTS))
        },
        "LICENSE": "LICENSE",
    },
}
# The class that the page gives to every drawing; the style that Plot adds to a drawing names it.
PLOT_CLASS = "omdpd-plot"


def main(words: list[str]) -> int:
    """The command line."""
    if words not in ([], ["--check"], ["--newest"]):
        print(__doc__, file=sys.stderr)
        return 2
    if words != ["--check"]:
        renew(newest=words == ["--newest"])
    wrong = faults()
    for line in wrong:
        print(line, file=sys.stderr)
    print("vendored files: " + ("damaged" if wrong else "as pinned"))
    return 1 if wrong else 0


def renew(newest: bool) -> None:
    """Fetch every package; with `newest` the pins are written anew, otherwise they decide."""
    pins = json.loads(PINS.read_text()) if PINS.exists() else {"packages": {}}
    made: dict[str, dict[str, object]] = {}
    for package, wanted in PACKAGES.items():
        version = None if newest else pins["packages"].get(package, {}).get("version")
        version, contents = fetch(package, version, list(wanted))
        for inside, name in wanted.items():
            file = FOLDERS.get(package, VENDOR) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents[inside])
        made[package] = {"version": version, "sha256": {n: digest(contents[i]).hex() for i, n in wanted.items()}}
    if newest or not PINS.exists():
        style = plot_style((VENDOR / "plot.min.js").read_text())
        content = {"packages": made, "plot_class": PLOT_CLASS, "plot_style": source(style)}
        PINS.write_text(json.dumps(content, indent=1) + "\n")


def fetch(package: str, version: str | None, wanted: list[str]) -> tuple[str, dict[str, bytes]]:
    """The version and the wanted files of a package of the npm registry."""
    with tempfile.TemporaryDirectory() as folder:
        name = package if version is None else f"{package}@{version}"
        subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, capture_output=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as members:
            read = {inside: members.extractfile(f"package/{inside}") for inside in [*wanted, "package.json"]}
            contents = {inside: stream.read() for inside, stream in read.items() if stream is not None}
    return json.loads(contents["package.json"])["version"], contents


def faults() -> list[str]:
    """What differs from the pins."""
    pins = json.loads(PINS.read_text())
    wanted = {
        FOLDERS.get(package, VENDOR) / name: sha
        for package, pinned in pins["packages"].items()
        for name, sha in pinned["sha256"].items()
    }
    said = [f"{file} is not the pinned file" for file, sha in wanted.items() if digest(file.read_bytes()).hex() != sha]
    if source(plot_style((VENDOR / "plot.min.js").read_text())) != pins["plot_style"]:
        said.append("the style that Plot adds to a drawing is not the pinned one")
    return said


def plot_style(script: str) -> str:
    """The text of the style element that Plot adds to a drawing of our class."""
    found = re.search(r'append\("style"\)\.text\(`(:where\(\.\$\{\w+\}\) \{\\n  --plot-background[^`]*)`\)', script)
    assert found is not None, "Plot adds its style in another way now"
    return re.sub(r"\$\{\w+\}", PLOT_CLASS, found[1]).replace("\\n", "\n")


def source(text: str) -> str:
    """A text as a content security policy names it."""
    return "sha256-" + base64.b64encode(digest(text.encode())).decode()


def digest(content: bytes) -> bytes:
    """The checksum."""
    return hashlib.sha256(content).digest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
