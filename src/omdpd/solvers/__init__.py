"""Mathematics on arrays; every answer carries its certificate."""
