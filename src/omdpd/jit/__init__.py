"""How functions are compiled, kept and announced: Numba as a tool of every room."""
