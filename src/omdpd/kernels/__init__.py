"""Compiled functions on arrays: pure, no classes, no randomness of their own, no files."""
