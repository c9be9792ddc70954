"""Compiled functions on arrays: pure, one problem statement per docstring, axes (h, s, a, s')."""
