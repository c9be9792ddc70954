"""Compiled loops of play: here the truth and a learner meet, and the learner is shown what `Feedback` holds."""
