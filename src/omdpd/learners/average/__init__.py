"""Learners of averages per step in the long run; `play.windows.learn_windows` plays them, and nothing else does."""
