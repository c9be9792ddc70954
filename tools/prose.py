"""Measure the sentences of README and the pages, and count their words: ``python -m tools.prose [PAGE ...]``.

Prose is what a reader reads as sentences: tables, code, formulas, quotations, headings and blocks of numbers that a
program fills in are left out.  An inline formula or piece of code is one word.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Longest mean and longest single sentence of a page, in words, and words of all pages together.
MEAN, LONGEST, IN_ALL = 18, 40, 35_000
# Characters of code that a page shows beside one another at 1280 px.
COLUMN = 94
# Words that readers stumbled over, and what to say instead.
AVOID = {
    r"dear(?:er|est)?": "expensive",
    r"as (?:it|they) comes?": "with default settings",
    r"but (?:on|under) `": "except on",
    r"gone on with": "resumed",
    r"said anew": "overridden",
    r"(?:is|are) (?-i:none)(?! of)": "does not exist",
    r"whoever": "the caller, the person who",
    r"nobody": "no one, no learner",
    r"(?:was|were|is|are) met": "observed",
    r"who violates": "a learner that violates",
    r"as long as one another": "equally long",
}
_BLOCKS = (
    r"\A---\n.*?\n---\n",  # front matter
    r"<!-- numbers: .*?<!-- end -->",
    r"<!--.*?-->",
    r"^(`{3,}|~{3,}).*?^\1[ \t]*$",  # code
    r"^\$\$.*?^\$\$[ \t]*$",
    r"(?<=\n\n)(?: {4,}[^\n]*\n)+(?=\n)",  # formulas and commands that stand alone
    r"^ {0,3}\|.*?$",  # rows of tables
    r"^ {0,3}>.*?$",  # quotations
    r"^:{3,}.*?$",
    r"^:[\w-]+:.*?$",  # options of directives
    r"<[^>\n]+>",
)


@dataclass(frozen=True)
class Prose:
    """The sentences of a page, each as its list of words."""

    sentences: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> int:
        """Words in all."""
        return sum(map(len, self.sentences))

    @property
    def mean(self) -> float:
        """Mean number of words of a sentence."""
        return self.words / max(len(self.sentences), 1)

    @property
    def longest(self) -> tuple[str, ...]:
        """The longest sentence."""
        return max(self.sentences, key=len, default=())


def prose(text: str) -> Prose:
    """The prose of a page in Markdown."""
    for block in _BLOCKS:
        text = re.sub(block, "\n", text, flags=re.MULTILINE | re.DOTALL if "^ {0,3}" not in block else re.MULTILINE)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\{[\w:-]+\}(?=`)", "", text)  # roles
    text = re.sub(r"(`+)[^`].*?\1|\$[^$\n]+\$", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    sentences: list[tuple[str, ...]] = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)", text):
        if not paragraph.lstrip().startswith("#"):
            for sentence in re.split(rf"(?<=[.!?]){_after()}\s+(?=[\"“(*]*[A-Z0-9`])", " ".join(paragraph.split())):
                words = tuple(word for word in sentence.split() if re.search(r"\w", word))
                if words:
                    sentences.append(words)
    return Prose(tuple(sentences))


def code(text: str) -> list[str]:
    """The lines of code that a page shows, but for tables that a program fills in."""
    text = re.sub(r"<!-- numbers: .*?<!-- end -->", "", text, flags=re.DOTALL)
    blocks = re.findall(r"^(`{3,})([^\n]*)\n(.*?)^\1[ \t]*$", text, flags=re.DOTALL | re.MULTILINE)
    return [line for _, kind, block in blocks if "{raw}" not in kind for line in block.splitlines()]


def _after() -> str:
    """What must not stand before the end of a sentence: an abbreviation."""
    return "".join(rf"(?<!\b{short}\.)" for short in ("e\\.g", "i\\.e", "al", "vs", "cf", "App", "Sec", "Eq", "p"))


def pages(root: Path = ROOT) -> list[Path]:
    """README and every page of the site that is written by hand."""
    docs = root / "docs"
    return [root / "README.md", *sorted(page for page in docs.rglob("*.md") if page.parent != docs / "numbers")]


def docstring(text: str) -> str:
    """The prose of a docstring: no examples, formulas, headings of sections or names of parameters."""
    kept, section = [], False
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if len(lines) > 1 and set(lines[1].strip()) == {"-"}:
            section, lines = True, lines[2:]
        if section:  # a name stands at the margin, and its prose is indented
            kept.append("\n".join(line.strip() if line.startswith(" ") else "" for line in lines))
        elif not all(line.startswith("    ") for line in lines) and not lines[0].lstrip().startswith(">>>"):
            kept.append(block)
    return "\n\n".join(kept)


def errors(source: str) -> Iterator[str]:
    """Every sentence that a module raises; NAME stands for what is filled in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            said = node.exc.args[0]
            parts = said.values if isinstance(said, ast.JoinedStr) else [said]
            texts = [part.value if isinstance(part, ast.Constant) else "NAME" for part in parts]
            yield "".join(text for text in texts if isinstance(text, str))


def faults(page: Path) -> list[str]:
    """A sentence for everything in which a page is hard to read."""
    return faults_of(page.read_text(encoding="utf-8"))


def faults_of(text: str) -> list[str]:
    """A sentence for everything in which a text is hard to read."""
    found = prose(text)
    said = []
    if found.mean > MEAN:
        said.append(f"its sentences have {found.mean:.1f} words on average, more than {MEAN}")
    said += [f"{len(words)} words: {' '.join(words[:12])} ..." for words in found.sentences if len(words) > LONGEST]
    plain = " ".join(" ".join(words) for words in found.sentences)
    for pattern, better in AVOID.items():
        said += [f"{match!r}: say {better}" for match in re.findall(rf"\b{pattern}\b", plain, re.IGNORECASE)]
    return said


def main(names: list[str]) -> int:
    """Print words, mean and longest sentence of each page; of the pages that are named, every fault."""
    total = 0
    for page in [Path(name).resolve() for name in names] or pages():
        found = prose(page.read_text(encoding="utf-8"))
        total += found.words
        print(f"{page.relative_to(ROOT)!s:38} {found.words:6} {found.mean:6.1f} {len(found.longest):5}")
        for line in faults(page) if names else ():
            print(f"    {line}")
    print(f"{'in all':38} {total:6}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
