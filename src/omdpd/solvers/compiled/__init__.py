"""Compiled functions on arrays: pure, one problem statement per docstring, axes (h, s, a, s')."""

from omdpd.solvers.compiled.announce import listen
from omdpd.solvers.compiled.function_cache import install

install()
listen()
