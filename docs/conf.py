"""How the site is built (`make docs`): pages are Markdown, examples run during the build, API pages come from code."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

import omdpd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.inventory import PLACE, inventory
from tools.page_numbers import entries, notices

# Tutorials and their kernels find the package that this process found.
os.environ.setdefault("PYTHONWARNINGS", "ignore")
# And the command beside it; whoever builds the site is not to be read on its pages.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ["OMDPD_QUIET"] = "1"

project = "omdpd"
author = "The omdpd developers"
copyright = "The omdpd developers"
version = release = omdpd.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "studies/data", "numbers"]
html_theme = "pydata_sphinx_theme"
html_title = "omdpd"
html_show_sourcelink = False
html_static_path = ["_static"]
# The page on strong and weak violation, one click from the page for a class.
html_extra_path = ["../src/omdpd/report/page/demo.html"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = ["katex/katex.min.js", "formulas.js"]
html_math_renderer = "katex"
STUDIES = sorted(Path(__file__).parent.glob("studies/*.md"))
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    # A study has one heading, and figures as wide as a page.
    "secondary_sidebar_items": {"**": ["page-toc"], **{f"studies/{page.stem}": [] for page in STUDIES}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"version": omdpd.__version__}
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

# Docstrings write `code` with one backtick, as Markdown does.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

_SECTIONS = {"Attributes", "Parameters", "Returns", "Raises", "Notes", "Examples", "See Also"}


def _escaped(line: str) -> str:
    """A line of prose whose mathematics is not taken for markup; what stands in backticks is left alone."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(p if p.startswith("`") else re.sub(r"([*|])|(?<=\w)_(?!\w)", r"\\\g<0>", p) for p in parts)


def _restructured(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings as reStructuredText: indented formulas become literal blocks, prose is escaped."""
    out: list[str] = []
    section, literal = False, False
    for i, line in enumerate(lines):
        underline = bool(line) and set(line) == {"-"}
        if underline and out and out[-1].strip() in _SECTIONS:
            section = True
        indented, code = line.startswith("    "), line.lstrip().startswith((">>>", "..."))
        if not line.strip() or underline or code or (code := _in_doctest(lines, i)):
            out.append(line)
            literal = literal and not line.strip()
            continue
        if indented and not section and not literal:
            if not out or not out[-1].strip():
                out += ["::", ""]
            else:
                out += ["", "::", ""]
        literal = indented and not section
        out.append(line if literal else _escaped(line))
        if not indented and not section and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            out.append("")
    lines[:] = out


def _in_doctest(lines: list[str], i: int) -> bool:
    """Whether a line is what an example prints."""
    while i >= 0 and lines[i].strip():
        if lines[i].lstrip().startswith(">>>"):
            return True
        i -= 1
    return False


def _dated(app: Any, docname: str, source: list[str]) -> None:
    """A note above every table or figure whose code has changed since it was made."""
    page = f"docs/{Path(app.env.doc2path(docname)).relative_to(app.srcdir).as_posix()}"
    for entry, sentence in notices(page=page):
        # Which files those are is what `make stale` says.
        short = re.sub(
            "^what is in .* changed since this (.*) was made",
            r"code behind this \1 changed since it was made",
            sentence,
        )
        note = f":::{{note}}\n{short[0].upper() + short[1:]}.\n:::\n\n"
        figure = None if entry.place else Path(os.path.relpath(entry.figures[0], Path(page).parent)).as_posix()
        shown = f"<!-- numbers: {entry.name} -->" if figure is None else rf"!\[[^]]*\]\({re.escape(figure)}\)"
        source[0] = re.sub(shown, lambda match, note=note: note + match[0], source[0], count=1)


def _listed(app: Any, docname: str, source: list[str]) -> None:
    """The list of every file where a page asks for it."""
    source[0] = source[0].replace(PLACE, inventory())


def _with_numbers(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages with numbers or files are read again: whether code has changed is not written in them."""
    pages = {entry.page.removeprefix("docs/").removesuffix(".md") for entry in entries()}
    return sorted((pages | {"files"}) & env.found_docs)


def _with_large_pictures(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Every picture of a page leads to itself in its full size: a column is narrower than most of them."""
    picture = r'(?<!">)(<img [^>]*src="([^"]+\.(?:png|svg|gif))"[^>]*>)'
    if "body" in context:
        context["body"] = re.sub(picture, r'<a class="picture" href="\2">\1</a>', context["body"])


def _formula(tag: str) -> tuple[Any, Any]:
    """How a formula is written into a page: as it was typed, for `formulas.js` to set."""

    def write(translator: Any, node: Any) -> None:
        translator.body.append(translator.starttag(node, tag, "", CLASS="formula"))
        translator.body.append(f"{translator.encode(node.astext())}</{tag}>")
        raise nodes.SkipNode

    return write, None


def setup(app: Any) -> None:
    """Docstrings become reStructuredText before anything else reads them; pages say how old their numbers are."""
    app.add_html_math_renderer("katex", _formula("span"), _formula("div"))
    app.connect("html-page-context", _with_large_pictures)
    app.connect("source-read", _dated)
    app.connect("source-read", _listed)
    app.connect("env-get-outdated", _with_numbers)
    app.connect("autodoc-process-docstring", _restructured, priority=100)
