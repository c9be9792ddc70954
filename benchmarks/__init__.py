"""Timings, fuzzers and long trials."""
