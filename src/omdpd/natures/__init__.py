"""What picks the costs of an episode, one module per idea."""
