"""Learners, one module each; none imports another."""
