"""A mirror step over a confidence box, by an interior-point method."""
