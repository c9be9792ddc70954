"""A mirror step over the flows of one layered graph."""
