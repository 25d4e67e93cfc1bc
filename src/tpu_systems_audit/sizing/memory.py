"""What training and serving keep in HBM: closed forms, in whole bytes."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

from tpu_systems_audit.models import Leaf, Model
from tpu_systems_audit.sizing.optimizers import CONSTANT_BYTES, NEED_SHAPES, moment_bytes
from tpu_systems_audit.units import InputError, dtype_bits, number, shown

KV_DTYPES = ("bf16", "fp32", "fp8", "int8")
WEIGHT_DTYPES = ("bf16", "fp32", "fp8", "int8", "int4")

INT4_GROUP = 32


@dataclass(frozen=True)
class Policy:
    """Bytes per parameter, moments as AdamW's two together."""

    name: str
    weights: Fraction
    working_copy: Fraction
    gradients: Fraction
    moments: Fraction


def _policy(name: str, *bytes_per_parameter: int) -> Policy:
    return Policy(name, *map(Fraction, bytes_per_parameter))


POLICIES = {
    policy.name: policy
    for policy in (
        _policy("fp32", 4, 0, 4, 8),
        _policy("mixed-bf16", 4, 2, 2, 8),
        _policy("mixed-bf16-fp32-grads", 4, 2, 4, 8),
        _policy("pure-bf16", 2, 0, 2, 4),
    )
}


@dataclass(frozen=True)
class TrainState:
    """The state of one training step, in bytes over all chips."""

    parameters: int
    policy: str
    optimizer: str
    weights_bytes: int
    working_copy_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    constant_bytes: int

    @property
    def resident_bytes(self) -> int:
        """What lives between steps, the kept weights and the optimizer's moments."""
        return self.weights_bytes + self.optimizer_bytes

    @property
    def peak_bytes(self) -> int:
        """What a step needs at once, the resident state, the working copy and the gradients."""
        return self.resident_bytes + self.working_copy_bytes + self.gradients_bytes


@dataclass(frozen=True)
class ServeState:
    """What serving keeps, in bytes over all chips."""

    parameters: int
    weights_dtype: str
    kv_dtype: str
    context: int
    batch: int
    weights_bytes: int
    weights_scale_bytes: int
    kv_bytes_per_token: int
    kv_cache_bytes: int
    kv_scale_bytes: int

    @property
    def total_bytes(self) -> int:
        """Weights and cache, both with their scales."""
        return self.weights_bytes + self.weights_scale_bytes + self.kv_cache_bytes + self.kv_scale_bytes


def find_policy(name: str) -> Policy:
    """Look up one of the four policies.

    Raises:
        InputError: when there is no such policy.

    >>> find_policy("pure-bf16").weights
    Fraction(2, 1)
    """
    if name not in POLICIES:
        raise InputError(f"--policy: {shown(name)} is unknown; one of {' '.join(POLICIES)} is right")
    return POLICIES[name]


def policy_from_bytes(text: str) -> Policy:
    """Read a policy given as bytes per parameter: weights, working copy, gradients, moments.

    Args:
        text: four numbers, such as ``2,0,2,8`` for bf16 weights with fp32 moments and no master copy.

    Raises:
        InputError: when there are not four numbers from 0 to 64, or the weights take none.

    >>> policy_from_bytes("2,0,2,8").moments
    Fraction(8, 1)
    """
    name = "--bytes-per-parameter"
    right = "four numbers WEIGHTS,COPY,GRADIENTS,MOMENTS from 0 to 64, weights above 0, are right, such as 2,0,2,8"
    try:
        figures = [number(part, name) for part in text.split(",")]
    except InputError:
        figures = []
    if len(figures) != 4 or max(figures) > 64 or figures[0] == 0:
        raise InputError(f"{name}: {shown(text)} is no policy; {right}")
    return Policy(f"bytes {text.strip()}", *figures)


def train_state(model: Model | int, policy: Policy, optimizer: str = "adamw") -> TrainState:
    """Count the bytes that training keeps and needs.

    Args:
        model: a model, or a bare parameter count.
        policy: bytes per parameter of weights, working copy, gradients and moments.
        optimizer: one of ``optimizers.OPTIMIZERS``; it changes only the moments.

    Raises:
        InputError: for an unknown optimizer, or one that needs shapes with a bare count.

    Source: S. Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1 (16 bytes per parameter under Adam).

    >>> state = train_state(7 * 10**9, find_policy("mixed-bf16"))
    >>> state.resident_bytes // 10**9, state.peak_bytes // 10**9
    (84, 112)
    """
    widths = policy.moments / 2, policy.weights
    count = model if isinstance(model, int) else model.parameters
    if isinstance(model, int):
        if optimizer in NEED_SHAPES:
            raise InputError(f"--optimizer: {optimizer} needs the model's shapes, not a bare count; name a model")
        moments = moment_bytes((count,), optimizer, *widths)
    else:
        each = (leaf.count * moment_bytes(leaf.shape, optimizer, *widths) for leaf in model.leaves)
        moments = sum(each, Fraction(0))
    return TrainState(
        parameters=count,
        policy=policy.name,
        optimizer=optimizer,
        weights_bytes=ceil(count * policy.weights),
        working_copy_bytes=ceil(count * policy.working_copy),
        gradients_bytes=ceil(count * policy.gradients),
        optimizer_bytes=ceil(moments),
        constant_bytes=CONSTANT_BYTES[optimizer],
    )


def serve_state(
    model: Model, context: int, batch: int, weights_dtype: str = "bf16", kv_dtype: str = "bf16"
) -> ServeState:
    """Count the bytes of weights and KV cache for *batch* sequences of *context* tokens.

    Args:
        model: the model.
        context: tokens held per sequence, at least 1.
        batch: sequences, at least 1.
        weights_dtype: one of ``WEIGHT_DTYPES``; int8 and int4 quantize matrices, with scales.
        kv_dtype: one of ``KV_DTYPES``; int8 adds one fp32 scale per token and KV head, for K and for V.

    Raises:
        InputError: for a dtype that is not among those.

    A layer with a sliding window holds at most its window; an MLA layer holds its latent.
    """
    weights_bits = dtype_bits(weights_dtype, "--weights-dtype", WEIGHT_DTYPES)
    kv_bits = dtype_bits(kv_dtype, "--kv-dtype", KV_DTYPES)
    held = [(run, min(context, run.window or context)) for run in model.caches]
    scale_values = sum(run.layers * run.scales_per_token * tokens for run, tokens in held)
    return ServeState(
        parameters=model.parameters,
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        context=context,
        batch=batch,
        weights_bytes=sum(_leaf_bytes(leaf, weights_dtype, weights_bits) for leaf in model.leaves),
        weights_scale_bytes=sum(_scale_bytes(leaf, weights_dtype) for leaf in model.leaves),
        kv_bytes_per_token=model.kv_values_per_token * kv_bits // 8,
        kv_cache_bytes=batch * sum(run.layers * run.values_per_token * tokens for run, tokens in held) * kv_bits // 8,
        kv_scale_bytes=batch * scale_values * 4 if kv_dtype == "int8" else 0,
    )


def _leaf_bytes(leaf: Leaf, dtype: str, bits: int) -> int:
    """Bytes of a leaf's values: integers for matrices only, what is not a matrix stays bf16."""
    quantized = dtype in ("int8", "int4")
    if quantized and leaf.kind != "matrix":
        return leaf.parameters * 2
    return leaf.count * ceil(Fraction(prod(leaf.shape) * bits, 8))


def _scale_bytes(leaf: Leaf, dtype: str) -> int:
    """int8: an fp32 scale per output column. int4: a bf16 scale per 32 values along the contracted side."""
    if leaf.kind != "matrix":
        return 0
    contracted, outputs = leaf.shape
    if dtype == "int8":
        return leaf.count * outputs * 4
    if dtype == "int4":
        return leaf.count * ceil(Fraction(contracted, INT4_GROUP)) * outputs * 2
    return 0
