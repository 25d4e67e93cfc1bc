"""What fits on which slice: bytes of training and serving, and the chips that hold them."""

from tpu_systems_audit.sizing.activations import REMATS, activation_bytes, margin_bytes
from tpu_systems_audit.sizing.capacity import answer
from tpu_systems_audit.sizing.jobs import BASES, DEFAULT_BUDGET, DEFAULT_SEQUENCE, Job, Serving, Training
from tpu_systems_audit.sizing.memory import (
    KV_DTYPES,
    POLICIES,
    WEIGHT_DTYPES,
    Policy,
    ServeState,
    TrainState,
    find_policy,
    policy_from_bytes,
    serve_state,
    train_state,
)
from tpu_systems_audit.sizing.optimizers import OPTIMIZERS, moment_bytes
from tpu_systems_audit.sizing.plan import (
    Plan,
    decode_floor_ms,
    margin_per_chip,
    min_chips,
    plan_serve,
    plan_train,
)

__all__ = [
    "BASES",
    "DEFAULT_BUDGET",
    "DEFAULT_SEQUENCE",
    "KV_DTYPES",
    "OPTIMIZERS",
    "POLICIES",
    "REMATS",
    "WEIGHT_DTYPES",
    "Job",
    "Plan",
    "Policy",
    "ServeState",
    "Serving",
    "TrainState",
    "Training",
    "activation_bytes",
    "answer",
    "decode_floor_ms",
    "find_policy",
    "margin_bytes",
    "margin_per_chip",
    "min_chips",
    "moment_bytes",
    "plan_serve",
    "plan_train",
    "policy_from_bytes",
    "serve_state",
    "train_state",
]
