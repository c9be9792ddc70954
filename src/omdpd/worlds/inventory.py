"""A small shop: stock earns when it is asked for, and costs to order and to keep.

| what | law |
|---|---|
| state | items in stock, 0 .. capacity (5); starts empty |
| action | items to order, 0 .. `max_order` (capacity); an order is cut to the free room, what is cut is not paid |
| transition | demand D has the law (.3, .2, .2, .2, .05, .05) on 0 .. 5; next stock = max(stock + order - D, 0) |
| reward | E[min(D, stock + order)] * 8, divided by its largest value |
| cost | (4 + 2 * order) if anything is ordered, plus 1 per item in the shop after ordering |
| budget | `budget` (66.5) per episode, which is 3.5 when costs are divided by their largest value, 19 |
| scenarios | the price of a delivery: 1.3 times in its season (early, mid or late in the episode), 0.7 times outside |

Source: the inventory example of the safe-exploration literature (DOPE, 2022); dynamics and reward re-derived.
"""

from __future__ import annotations

import numpy as np

from omdpd.problem.arrays import InvalidInputError, as_law, positive_integer
from omdpd.problem.cmdp import CMDP, Labels
from omdpd.problem.laws import laws_of_entries
from omdpd.worlds.tables import by_windows, one_hot

DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)
SETUP, PER_ITEM, HOLDING = 4.0, 2.0, 1.0
SEASONS = ("dear early", "dear midway", "dear late")
DEAR, CHEAP = 1.3, 0.7


def make(
    capacity: int = 5,
    horizon: int = 7,
    budget: float = 66.5,
    demand: tuple[float, ...] = DEMAND,
    *,
    max_order: int | None = None,
) -> CMDP:
    """A small shop: stock earns when it is asked for, and costs to order and to keep."""
    S, H = positive_integer("capacity", capacity) + 1, positive_integer("horizon", horizon)
    law = as_law("demand", demand, ["items"], [None])
    if law.size < 2 or law[1:].sum() == 0.0:
        raise InvalidInputError("demand never asks for an item, so nothing can be earned")
    A = S if max_order is None else positive_integer("max_order", max_order) + 1
    stock, wish = np.arange(S)[:, None], np.arange(A)[None, :]
    order = np.minimum(wish, S - 1 - stock)
    shelf = stock + order
    sold = np.zeros((S, A))
    for asked, chance in enumerate(law):
        sold += chance * np.minimum(shelf, asked)
    left = np.maximum(shelf[:, :, None] - np.arange(law.size), 0)
    laws = laws_of_entries(np.repeat(np.arange(S * A), law.size), left.ravel(), np.tile(law, S * A), (H, S, A))
    ordering = np.where(order > 0, SETUP + PER_ITEM * order, 0.0)
    holding = HOLDING * shelf
    labels = Labels(tuple(f"stock {s}" for s in range(S)), tuple(f"order {a}" for a in range(A)), ("spending",))
    reward = sold / sold.max()
    cmdp = CMDP.from_arrays(laws, reward, ordering + holding, budget, one_hot(S, 0), H)
    prices = by_windows(H, SEASONS, DEAR, CHEAP)
    return cmdp.labelled("inventory", labels).with_scenarios(
        {name: price[:, None, None] * ordering + holding for name, price in prices.items()}
    )
