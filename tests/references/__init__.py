"""Independent versions of what is tested, and what several tests need."""
