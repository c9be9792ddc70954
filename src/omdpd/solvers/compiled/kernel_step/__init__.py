"""A mirror step over one kernel, by Newton's method on the dual."""
