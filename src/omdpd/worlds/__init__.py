"""Families of CMDPs, one module each; `make(rng, ...)` draws one."""
