"""Theory holds proofs against runs, as numbers: the theorem's bounds, and its inequalities in runs played again."""
