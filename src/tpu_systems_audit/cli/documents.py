"""What each command answers, as one JSON document: the keys that others rely on, units in their names."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tpu_systems_audit.chips import PEAK_DTYPES, Generation, Roofline, Slice, ridge_point, sources
from tpu_systems_audit.cli.base import Document, document
from tpu_systems_audit.units import gib

if TYPE_CHECKING:  # a command about chips alone starts without these rooms
    from tpu_systems_audit.models import Model
    from tpu_systems_audit.sizing import Job, Plan, ServeState, TrainState


def generation_entry(chip: Generation) -> Document:
    """Describe a generation, each figure with its source and date."""
    return {
        "name": chip.name,
        "product": chip.product,
        "device_kind": chip.device_kind,
        "aliases": list(chip.aliases),
        "hbm_gib": chip.hbm_gib,
        "usable_hbm_gib_per_device": float(chip.usable_hbm_gib_per_device),
        "devices_per_chip": chip.devices_per_chip,
        "hbm_gb_per_s": float(chip.hbm_gb_per_s),
        "peak_tflops": {dtype: _float(chip.peak_tflops(dtype)) for dtype in PEAK_DTYPES},
        "ridge_flop_per_byte": {dtype: _float(ridge_point(chip, dtype)) for dtype in PEAK_DTYPES},
        "slices": [slice_entry(each) for each in chip.slices],
        "ordered_through": chip.ordered_through,
        "sources": {name: _figure_sources(chip, name) for name in chip.figures},
    }


def _figure_sources(chip: Generation, name: str) -> Document:
    figure = chip.figures[name]
    others = [
        {"value": float(value), "title": sources()[key]["title"], "note": note} for value, key, note in figure.others
    ]
    return {"value": float(figure.value), **sources()[figure.source], "others": others}


def slice_entry(each: Slice) -> Document:
    """Describe a slice by the names it is ordered with."""
    return {
        "accelerator_type": each.accelerator_type,
        "topology": each.topology,
        "chips": each.chips,
        "hosts": each.hosts,
        "devices": each.devices,
        "note": each.note,
    }


def roofline_document(point: Roofline) -> Document:
    """Answer the ``roofline`` command."""
    return document("roofline", **{key: _float(value) for key, value in asdict(point).items()})


def model_entry(model: Model | int) -> Document:
    """Describe a model: its parameters by part, the defaults taken and what to know of it."""
    if isinstance(model, int):
        return {"name": None, "parameters": model, "active_parameters": model, "positions": None, "parts": {},
                "defaults": [], "notes": []}  # fmt: skip
    return {
        "name": model.name,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "positions": model.positions,
        "parts": model.parts,
        "defaults": list(model.defaults),
        "notes": list(model.notes),
    }


def train_document(model: Model | int, state: TrainState) -> Document:
    """Answer ``memory train``."""
    parts = {
        "weights": state.weights_bytes,
        "working_copy": state.working_copy_bytes,
        "gradients": state.gradients_bytes,
        "optimizer": state.optimizer_bytes,
    }
    return document(
        "memory train",
        model=model_entry(model),
        parameters=state.parameters,
        policy=state.policy,
        optimizer=state.optimizer,
        bytes=parts,
        optimizer_constant_bytes=state.constant_bytes,
        resident_bytes=state.resident_bytes,
        peak_bytes=state.peak_bytes,
        resident_gib=gib(state.resident_bytes),
        peak_gib=gib(state.peak_bytes),
    )


def serve_document(model: Model, state: ServeState) -> Document:
    """Answer ``memory serve``."""
    sizes = {
        "weights": state.weights_bytes,
        "weights_scale": state.weights_scale_bytes,
        "kv_cache": state.kv_cache_bytes,
        "kv_scale": state.kv_scale_bytes,
        "total": state.total_bytes,
    }
    return document(
        "memory serve",
        model=model_entry(replace(model, notes=(*model.notes, *model.beyond_positions(state.context)))),
        parameters=state.parameters,
        context=state.context,
        batch=state.batch,
        weights_dtype=state.weights_dtype,
        kv_dtype=state.kv_dtype,
        kv_bytes_per_token=state.kv_bytes_per_token,
        kv_gib_per_token=gib(state.kv_bytes_per_token),
        **{f"{name}_bytes": size for name, size in sizes.items()},
        **{f"{name}_gib": gib(size) for name, size in sizes.items()},
    )


def plan_document(job: Job, plans: list[Plan]) -> Document:
    """Answer ``plan train`` or ``plan serve``: one entry a generation, or one for the slice asked about."""
    entry = model_entry(job.model)
    return document(
        f"plan {job.kind}",
        model=entry,
        parameters=entry["parameters"],
        budget=float(job.budget),
        **job.settings,
        plans=[_plan_entry(plan) for plan in plans],
    )


def _plan_entry(plan: Plan) -> Document:
    chip = plan.generation
    entry: Document = {
        "generation": chip.name,
        "required_gib": gib(plan.required_bytes),
        "basis": plan.basis,
        "min_chips": plan.min_chips,
        "slice": slice_entry(plan.slice) if plan.slice else None,
        "gib_per_chip": _gib(plan.state_bytes_per_chip),
        "fraction_of_hbm": _float(plan.fraction_of_hbm),
        "fits": plan.fits,
        "short_gib": gib(plan.short_bytes),
        "hbm_gib": chip.hbm_gib,
        "usable_hbm_gib_per_chip": gib(chip.usable_hbm_bytes),
        "parts_gib": {name: gib(size) for name, size in plan.parts_bytes.items() if size},
    }
    if plan.basis == "serving":
        entry["decode_floor_ms"] = _float(plan.decode_floor_ms)
    else:
        entry["activation_gib_per_chip"] = _gib(plan.activation_bytes_per_chip)
        entry["margin_gib"] = _gib(plan.margin_bytes_per_chip)
    if plan.headroom_bytes is not None:
        entry["headroom_gib"] = gib(plan.headroom_bytes)
        entry |= {f"largest_{side}": most for side, most in plan.largest.items()}
    entry["ordered_through"] = chip.ordered_through
    entry["notes"] = list(plan.notes)
    entry["advice"] = list(plan.advice)
    return entry


def _float(value: object) -> object:
    """Fractions leave the package as floats, at the very end."""
    return float(value) if isinstance(value, Fraction) else value


def _gib(size_bytes: int | Fraction | None) -> float | None:
    return None if size_bytes is None else gib(size_bytes)
