"""The first whole number of a stream of random numbers, without the objects that a stream is made of.

`np.random.default_rng((seed, k)).integers(n)` builds a seed sequence, a bit generator and a generator for one number,
which at small sizes is a quarter of an episode.  Here is the same number by the same published algorithms: NumPy's seed
sequence (M. E. O'Neill's seed_seq), the generator PCG64 (XSL-RR 128/64) and D. Lemire's bounded numbers.
"""

from __future__ import annotations

import numpy as np

from omdpd.jit.decorators import entry, inner

Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
# Of the seed sequence: start and factor of its two hashes, the two factors of a mix, and the shift of all.
INIT_A, MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
INIT_B, MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
MIX_LEFT, MIX_RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
SHIFT = np.uint64(16)
# The factor of PCG64's steps, upper and lower half.
FACTOR_HIGH, FACTOR_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)


@entry
def first_below(seed: int, k: int, n: int) -> int:
    """`np.random.default_rng((seed, k)).integers(n)` for 0 <= seed, k < 2^63 and 0 < n < 2^32."""
    if n == 1:
        return 0
    high, low, step_high, step_low = seeded(seed, k)
    count, threshold = np.uint64(n), np.uint64(0x100000000 - n) % np.uint64(n)
    while True:
        high, low = stepped(high, low, step_high, step_low)
        drawn = rotated(high ^ low, high >> np.uint64(58))
        for part in (drawn & LOW, drawn >> HALF):
            product = part * count
            if product & LOW >= threshold:
                return int(np.int64(product >> HALF))  # not np.uint64, which would make the answer a float


@inner
def seeded(seed: int, k: int) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """State and increment of PCG64, each as its upper and lower half."""
    pool = mixed(seed, k)
    words = np.empty(4, np.uint64)
    constant = INIT_B
    for i in range(8):
        data = pool[i % 4] ^ constant
        constant = (constant * MULT_B) & LOW
        data = (data * constant) & LOW
        data ^= data >> SHIFT
        words[i // 2] = data if i % 2 == 0 else words[i // 2] | (data << HALF)
    step_high = (words[2] << np.uint64(1)) | (words[3] >> np.uint64(63))
    step_low = (words[3] << np.uint64(1)) | np.uint64(1)
    high, low = added(step_high, step_low, words[0], words[1])  # a step from zero, and the seed
    high, low = stepped(high, low, step_high, step_low)
    return high, low, step_high, step_low


@inner
def mixed(seed: int, k: int) -> Words:
    """The seed sequence's pool of four numbers of 32 bits, from the words of two whole numbers."""
    pool, n = np.zeros(4, np.uint64), 0
    for whole in (np.uint64(seed), np.uint64(k)):
        pool[n] = whole & LOW
        n += 1
        if whole > LOW:
            pool[n] = whole >> HALF
            n += 1
    constant = INIT_A
    for i in range(4):
        pool[i], constant = hashed(pool[i], constant)
    for i in range(4):
        for j in range(4):
            if i != j:
                value, constant = hashed(pool[i], constant)
                value = (pool[j] * MIX_LEFT - value * MIX_RIGHT) & LOW
                pool[j] = value ^ (value >> SHIFT)
    return pool


@inner
def hashed(value: np.uint64, constant: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A word of the seed sequence, hashed, and the next constant."""
    value ^= constant
    constant = (constant * MULT_A) & LOW
    value = (value * constant) & LOW
    return value ^ (value >> SHIFT), constant


@inner
def stepped(high: np.uint64, low: np.uint64, step_high: np.uint64, step_low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """state * factor + increment, modulo 2^128."""
    a, b, c, d = low >> HALF, low & LOW, FACTOR_LOW >> HALF, FACTOR_LOW & LOW
    middle = a * d + ((b * d) >> HALF)
    carried = b * c + (middle & LOW)
    upper = a * c + (middle >> HALF) + (carried >> HALF)
    return added(upper + high * FACTOR_LOW + low * FACTOR_HIGH, low * FACTOR_LOW, step_high, step_low)


@inner
def added(high: np.uint64, low: np.uint64, more_high: np.uint64, more_low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A sum modulo 2^128."""
    total = low + more_low
    return high + more_high + (np.uint64(1) if total < low else np.uint64(0)), total


@inner
def rotated(value: np.uint64, by: np.uint64) -> np.uint64:
    """The bits turned to the right."""
    return (value >> by) | (value << ((np.uint64(64) - by) & np.uint64(63)))
