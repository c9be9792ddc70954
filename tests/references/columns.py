"""Tables of columns, told apart to the last bit."""

import numpy as np


def same_columns(one, other):
    """Whether two tables have the same names, types and numbers, nan included."""
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )
