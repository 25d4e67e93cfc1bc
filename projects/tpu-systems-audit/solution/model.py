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


# JAX and NumPy are imported where they are used, so that the functions above run with Python alone.


def quantize_int8(x, axis):
    """Return (codes, scale): int8 codes in -127…127 and float32 scales; axis is the one reduced over."""
    import numpy as np

    x = np.asarray(x, np.float32)
    if not np.isfinite(x).all():
        raise ValueError("x holds a NaN or an infinity")
    scale = np.abs(x).max(axis, keepdims=True) / np.float32(127)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.clip(np.rint(x / scale), -127, 127).astype(np.int8), scale


def int8_matmul(x, w):
    """Return x @ w in float32, from int8 codes whose products are summed in int32."""
    import jax
    import jax.numpy as jnp

    (x_codes, x_scale), (w_codes, w_scale) = quantize_int8(x, 1), quantize_int8(w, 0)
    dimensions = (((1,), (0,)), ((), ()))
    sums = jax.lax.dot_general(x_codes, w_codes, dimensions, preferred_element_type=jnp.int32)
    return sums.astype(jnp.float32) * (x_scale * w_scale)


def bf16_matmul(x, w):
    """Return x @ w in float32, from operands rounded to bf16."""
    import jax
    import jax.numpy as jnp

    x, w = jnp.asarray(x).astype(jnp.bfloat16), jnp.asarray(w).astype(jnp.bfloat16)
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def error_summary(x, w):
    """Return what bf16_matmul and int8_matmul are off, against the product of the inputs as they come."""
    import numpy as np

    exact = np.asarray(x, np.float64) @ np.asarray(w, np.float64)
    summary = {}
    for name, matmul in (("bf16", bf16_matmul), ("int8", int8_matmul)):
        off = np.asarray(matmul(x, w), np.float64) - exact
        summary[name] = {
            "max_abs": float(np.abs(off).max()),
            "rel_fro": float(np.linalg.norm(off) / np.linalg.norm(exact)),
        }
    return summary


def capture_warmed_trace(step, argument, trace_dir, steps=5):
    """Return the path of the *.xplane.pb that this call wrote: warmed steps, each numbered and waited for."""
    from pathlib import Path

    import jax

    before = set(Path(trace_dir).rglob("*.xplane.pb"))
    jax.block_until_ready(step(argument))
    with jax.profiler.trace(trace_dir):
        for number in range(steps):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                jax.block_until_ready(step(argument))
    (path,) = set(Path(trace_dir).rglob("*.xplane.pb")) - before
    return path
