"""Reads files and histories, never runs: tables, curves, figures, pictures."""
