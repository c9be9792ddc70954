"""What Newton's method on a dual needs whatever the flows: line search, multipliers in a box, heating, certificates."""
