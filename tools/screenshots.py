"""Make the pictures of docs/report.md and docs/class.md: ``python -m tools.screenshots`` (Chromium and Playwright).

A study of five learners under two natures, and a small one on a map, are played anew with `omdpd run` (a minute of
processor time); the page, its darkness, a phone and a map are looked at in a browser; the ranking is what `omdpd plot`
draws; the live page is looked at while a third study runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
STUDY = """\
episodes = 1000
seeds = 5
worlds = [{ name = "random_dirichlet" }]
natures = [{ name = "fixed" }, { name = "noisy" }]
learners = [
  { name = "ProximalOMDPD.standard" }, { name = "ProximalOMDPD.cautious" }, { name = "OMDPD.tuned" },
  { name = "SinhaVaze" }, { name = "Uniform" },
]
"""
MAP = """\
episodes = 300
seeds = 1
worlds = [{ name = "grid" }]
natures = [{ name = "fixed" }]
learners = [{ name = "ProximalOMDPD.standard", stationary = true }]
"""
LIVE = """\
episodes = 8000
seeds = 3
worlds = [{ name = "random_dirichlet" }]
natures = [{ name = "noisy" }]
learners = [{ name = "ProximalOMDPD.standard" }, { name = "OMDPD.tuned" }, { name = "SinhaVaze" }]
"""
# When it is looked at: runs are finished, another is running, and all of them are drawn.
MOMENT = """() => {
  const said = document.querySelector("#tally")?.textContent ?? "";
  return / running/.test(said) && / [3-8] finished/.test(said) && document.querySelectorAll("#curves svg").length >= 2;
}"""
WIDTH, MARGIN = 1000, 16
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars")


def omdpd(*words: object) -> None:
    """Run `omdpd words...` to its end, without its tables."""
    command = [sys.executable, "-m", "omdpd", *map(str, words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def played(text: str, folder: Path) -> Path:
    """The results of an experiment, played anew, with their page."""
    file = folder.with_suffix(".toml")
    file.write_text(text)
    omdpd("run", file, "--out", folder, "--fresh", "--report")
    return folder


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser; a sentence where there is none."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        sys.exit("there is no Chromium here (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def opened(browser: Any, address: str, width: int = WIDTH, **settings: Any) -> Any:
    """A page with everything drawn."""
    page = browser.new_context(viewport={"width": width, "height": 900}, **settings).new_page()
    page.goto(address)
    page.wait_for_selector("main[data-ready=yes]", timeout=60_000)
    return page


def shot(page: Any, first: str | None = None, last: str | None = None) -> Image.Image:
    """The page from the top of one section to the bottom of another; from its own top where no first is named."""
    edges = page.evaluate(
        "([a, b]) => [a ? document.querySelector(a).getBoundingClientRect().top + scrollY : 0,"
        " document.querySelector(b).getBoundingClientRect().bottom + scrollY]",
        [first, last],
    )
    top = max(edges[0] - MARGIN / 2, 0.0)
    clip = {"x": 0, "y": top, "width": page.viewport_size["width"], "height": edges[1] + MARGIN / 2 - top}
    return Image.open(BytesIO(page.screenshot(full_page=True, clip=clip)))


def beside(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures in a row, their tops in line, on white."""
    width = sum(picture.width for picture in pictures) + MARGIN * (len(pictures) - 1)
    found = Image.new("RGB", (width, max(picture.height for picture in pictures)), "white")
    left = 0
    for picture in pictures:
        found.paste(picture, (left, 0))
        left += picture.width + MARGIN
    return found


def above(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures of one width, one above the other."""
    found = Image.new("RGB", (pictures[0].width, sum(picture.height for picture in pictures)), "white")
    top = 0
    for picture in pictures:
        found.paste(picture, (0, top))
        top += picture.height
    return found


def save(picture: Image.Image, name: str) -> None:
    """Keep a picture in 256 colours, which is all that a page has."""
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(FIGURES / name, optimize=True)


def live(browser: Any, folder: Path) -> Image.Image:
    """The live page while a study runs, when some of its runs are finished and another one has begun."""
    file, out = folder / "live.toml", folder / "live"
    file.write_text(LIVE)
    run = _started("run", file, "--out", out, "--jobs", 1)
    while not (out / "runs").exists():
        time.sleep(0.1)
    server = _started("watch", out, "--port", 0)
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None, "the server says where it listens"
        page = opened(browser, address[0])
        page.wait_for_function(MOMENT, timeout=240_000)
        return shot(page, None, "#curves")
    finally:
        for process in (server, run):
            process.terminate()
            process.wait()


def _started(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "omdpd", *map(str, words)]
    environment = os.environ | {"OMDPD_COMMIT_SECONDS": "0.3"}  # so that a run is seen to run
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )  # fmt: skip


def main() -> None:
    """Play, look, and keep what was seen."""
    with tempfile.TemporaryDirectory() as scratch, browsing() as browser:
        folder = Path(scratch)
        study, grid = played(STUDY, folder / "five-learners"), played(MAP, folder / "map")
        report = (study / "report.html").as_uri()
        light = opened(browser, report, 1000)
        save(above([shot(light, None, "#glance"), shot(light, "#curves", "#curves")]), "report.png")
        dark = shot(opened(browser, report, 480, color_scheme="dark"), "#curves", "#curves")
        phone = shot(opened(browser, report, 360), "#curves", "#curves")
        save(beside([dark, phone]), "report-forms.png")
        cells = opened(browser, (grid / "report.html").as_uri(), 770)
        cells.locator("#slider-step").fill("3")
        save(shot(cells, "#policy", "#policy"), "report-map.png")
        omdpd("plot", study)
        with Image.open(study / "figure.png") as ranking:
            save(ranking.convert("RGB"), "ranking.png")
        save(live(browser, folder), "watch.png")
        omdpd("demo", folder / "demo.html")
        page = browser.new_context(viewport={"width": 860, "height": 900}).new_page()
        page.goto((folder / "demo.html").as_uri())
        page.get_by_role("button", name="alternating").click()
        save(shot(page, None, "#sums"), "demo.png")


if __name__ == "__main__":
    main()
