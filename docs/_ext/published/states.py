"""Published training states, chip counts and slices, each as calls of the package."""

from fractions import Fraction

from published.inputs import TERA, Inputs, Number, Route, exact, kept
from published.models import served_70b
from tpu_systems_audit.chips import generation, parse_slice
from tpu_systems_audit.sizing import find_policy, min_chips, policy_from_bytes, train_state
from tpu_systems_audit.units import GB, GIB, gib

BOOK_POLICY = "2,0,0,8"  # the scaling book's: bf16 weights and fp32 moments, no gradients and no master copy


def book_bytes(parameters: float) -> int:
    """What the scaling book counts for training, in bytes.

    >>> book_bytes(13e9) // GB
    130
    """
    return train_state(int(parameters), policy_from_bytes(BOOK_POLICY)).peak_bytes


def zero_gb(x: Inputs) -> Fraction:
    """What one of *dp* devices holds at a ZeRO stage: optimizer, gradients and weights are shared out in turn.

    >>> zero_gb({"params": 7.5e9, "stage": 3, "dp": 64})
    Fraction(15, 8)
    """
    state = train_state(int(x["params"]), find_policy("mixed-bf16"))
    # The fp32 weights that the policy keeps are the master copy, which ZeRO counts to the optimizer.
    by_stage = (state.resident_bytes, state.gradients_bytes, state.working_copy_bytes)
    shared = sum(by_stage[: x["stage"]])
    return (state.peak_bytes - shared + Fraction(shared, x["dp"])) / GB


def optimizer_gb(x: Inputs, optimizer: str) -> float:
    """Optimizer state of a bare count with fp32 moments, in GB."""
    return train_state(int(x["params"]), find_policy("fp32"), optimizer).optimizer_bytes / GB


def chips_for(total_tb: Number, hbm_gb: int) -> int:
    """Chips that hold a total when all of their HBM may be used, which the source allows itself."""
    return min_chips(int(exact(total_tb) * TERA), hbm_gb * GB, 1)


def book_slice(required_bytes: int, x: Inputs) -> int:
    """Chips of the smallest v5e slice, at the HBM and the budget that the source takes."""
    need = min_chips(required_bytes, int(x["hbm_bytes"]), x.get("budget", 1))
    return next(s.chips for s in generation("v5e").slices if s.chips >= need)


def _fp16_adam_gib(x: Inputs) -> float:
    parameters = int(exact(x["total_gib"]) * GIB / 2)
    return gib(train_state(parameters, find_policy("pure-bf16")).peak_bytes)


def _hbm(name: str) -> Route:
    return lambda _: generation(name).hbm_bytes


STATES: dict[str, Route] = {
    "sb-tr-01": lambda x: Fraction(x["hbm_gb"] * GB, book_bytes(GB)),
    "sb-tr-11": lambda x: book_bytes(x["params"]) / GB,
    "sb-inf-11": lambda x: book_bytes(x["params"]) / GB,
    **dict.fromkeys((f"pp-zero-{n:02}" for n in range(1, 14) if n != 6), zero_gb),
    "pp-opt-01": lambda x: optimizer_gb(x, "adamw"),
    "pp-opt-03": lambda x: optimizer_gb(x, "adam8bit"),
    "pp-hf-02": _fp16_adam_gib,
    "doc-30": lambda x: gib(train_state(x["params"], find_policy("fp32")).peak_bytes),
    **dict.fromkeys(
        ("sb-at-09", "sb-at-10"), lambda x: chips_for(exact(x["state_tb"]) + exact(x["ckpt_tb"]), x["hbm_gb"])
    ),
    **dict.fromkeys(("sb-ai-05", "sb-ai-06"), lambda x: book_slice(served_70b(x), x)),
    **dict.fromkeys(("sb-ai-09", "sb-ai-10", "sb-ai-12"), lambda x: book_slice(kept(x["params"], x["bits"] / 8), x)),
    **dict.fromkeys(("sl-02", "sl-08"), lambda x: chips_for(x["total_tb"], x["hbm_gb"])),
    "sb-tpu-02": lambda x: parse_slice(f"v5e:{x['pod_x']}x{x['pod_y']}")[1].hosts,
    "doc-16": lambda x: int(parse_slice(f"v5p:{x['x']}x{x['y']}x{x['z']}")[1].accelerator_type.rpartition("-")[2]),
    "doc-17": lambda x: parse_slice(f"v5p:{x['x']}x{x['y']}x{x['z']}")[1].hosts,
    "rg-20": _hbm("v3"),
    "rg-21": _hbm("v4"),
    "rg-22": _hbm("v5e"),
    "rg-24": _hbm("v6e"),
    "rg-26": _hbm("v2"),
    "rg-27": _hbm("v5p"),
}
