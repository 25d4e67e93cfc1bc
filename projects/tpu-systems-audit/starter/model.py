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
