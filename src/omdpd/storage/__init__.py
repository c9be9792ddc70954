"""Files: atomic, checked, no pickle."""
