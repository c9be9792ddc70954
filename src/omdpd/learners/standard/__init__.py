"""The default learner, written once: `learn` is one episode of it, the rest of the room is around that function."""
