"""From feedback to what is believed."""
