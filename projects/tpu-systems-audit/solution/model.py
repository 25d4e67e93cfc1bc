"""One way to write it."""

import math
from fractions import Fraction

GIB = 2**30

# Bytes per parameter under AdamW: weights kept, working copy, gradients, moments.
POLICIES = {
    "fp32": (4, 0, 4, 8),
    "mixed-bf16": (4, 2, 2, 8),
    "mixed-bf16-fp32-grads": (4, 2, 4, 8),
    "pure-bf16": (2, 0, 2, 4),
}


def ridge_point(peak_tflops, hbm_gb_per_s):
    """Return the ridge point in FLOP/byte."""
    return peak_tflops * 1e12 / (hbm_gb_per_s * 1e9)


def bound(intensity, ridge):
    """Return "compute" or "hbm"; at the ridge point, "compute"."""
    return "compute" if intensity >= ridge else "hbm"


def training_state_gib(parameters, policy):
    """Return (resident, peak), in GiB: what lives between steps, and what a step needs at once."""
    weights, copy, gradients, moments = POLICIES[policy]
    resident = weights + moments
    return parameters * resident / GIB, parameters * (resident + copy + gradients) / GIB


def kv_cache_gib(layers, kv_heads, head_dim, tokens, sequences, bytes_per_value):
    """Return the size of the cache, in GiB: one key and one value for each layer, head and token."""
    return 2 * layers * kv_heads * head_dim * tokens * sequences * bytes_per_value / GIB


def min_chips(required_gib, hbm_gib_per_chip, budget=0.8):
    """Return the smallest whole number of chips; exact, so that a full chip is not taken for an overfull one."""
    return math.ceil(Fraction(required_gib) / (Fraction(hbm_gib_per_chip) * Fraction(str(budget))))
