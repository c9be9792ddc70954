"""Compiled functions on arrays: pure, one problem statement per docstring, axes (h, s, a, s')."""

from omdpd.solvers.compiled.cache import forget_stale

forget_stale()
