"""One episode, and one run in memory, judged by the truth."""
