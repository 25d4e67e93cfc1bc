"""Your answers to the study guide, one function each; replace every ``raise``."""


def ridge_point(peak_tflops, hbm_gb_per_s):
    """Return the ridge point in FLOP/byte.

    peak_tflops: the peak rate of the matrix unit, in TFLOP/s (10**12 FLOP/s).
    hbm_gb_per_s: the bandwidth of HBM, in GB/s (10**9 bytes/s).
    """
    raise NotImplementedError("read lesson tpu-03, Ridge points")


def bound(intensity, ridge):
    """Return "compute" or "hbm": what bounds a kernel of this intensity; at the ridge point, "compute".

    intensity, ridge: in FLOP/byte.
    """
    raise NotImplementedError("read lesson tpu-03, Ridge points")


def training_state_gib(parameters, policy):
    """Return (resident, peak): the training state under AdamW, in GiB (2**30 bytes).

    parameters: how many.
    policy: "fp32", "mixed-bf16", "mixed-bf16-fp32-grads" or "pure-bf16"; the lesson has their bytes per parameter.
    """
    raise NotImplementedError("read lesson tpu-03, Training state")


def kv_cache_gib(layers, kv_heads, head_dim, tokens, sequences, bytes_per_value):
    """Return the size of the keys and values of all tokens of all sequences, in GiB."""
    raise NotImplementedError("read lesson tpu-03, KV cache")


def min_chips(required_gib, hbm_gib_per_chip, budget=0.8):
    """Return the smallest whole number of chips that holds required_gib, each filled to the budget at most.

    required_gib, hbm_gib_per_chip: in GiB.
    budget: the share of each chip's HBM that may be used, above 0 and at most 1.
    """
    raise NotImplementedError("read lesson tpu-03, Chips and slices")


def quantize_int8(x, axis):
    """Return (codes, scale): int8 codes in -127…127, and the float32 scale of each group, its axis kept with length 1.

    x: two-dimensional, float32; NaN and infinity raise ValueError.
    axis: the axis that is reduced over, so that 1 gives a scale for each row; None gives one for all of x.
    A group of zeros has scale 1. Ties round to the even code.
    """
    raise NotImplementedError("read lesson tpu-06, Quantize to INT8")


def int8_matmul(x, w):
    """Return x @ w in float32: x quantized for each row, w for each column, products summed in int32, then rescaled.

    x, w: two-dimensional, float32.
    """
    raise NotImplementedError("read lesson tpu-06, Quantize to INT8")


def bf16_matmul(x, w):
    """Return x @ w in float32: both rounded to bf16, jax.lax.dot_general with sums in float32.

    x, w: two-dimensional, float32.
    """
    raise NotImplementedError("read lesson tpu-06, Round to BF16")


def error_summary(x, w):
    """Return {"bf16": {"max_abs": …, "rel_fro": …}, "int8": {…}}: how far bf16_matmul and int8_matmul are off.

    The reference is the product of x and w as they come, in float64.
    max_abs is the largest absolute difference, rel_fro the Frobenius norm of the difference over the reference's.
    """
    raise NotImplementedError("read lesson tpu-06, Bound the error")


def capture_warmed_trace(step, argument, trace_dir, steps=5):
    """Return the path of the *.xplane.pb that this call wrote: that many steps, each with its number, none compiled.

    step: call it as step(argument), with that same argument each time; it returns an array that may not be ready yet.
    trace_dir: the folder for the profiler, as text; older traces in it stay as they are.
    """
    raise NotImplementedError("read lesson tpu-06, Capture a warmed trace")
