"""What proofs say of a run, as numbers: the theorem's bounds, and its inequalities held against runs played again."""
