"""Timings of the mirror step and of planning, side by side with general solvers, on problems from real loops."""
