"""The whole answer: the plan, what else fits on a slice one has, and what would help where nothing does."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import floor
from typing import Any

from tpu_systems_audit.chips import Generation, Slice, generations
from tpu_systems_audit.sizing.jobs import Job
from tpu_systems_audit.sizing.plan import Plan, plan_job

MOST = {"batch": 2**20, "batch_per_chip": 2**20, "context": 2**26, "sequence": 2**26}


def answer(job: Job, chip: Generation, on: Slice | None = None) -> Plan:
    """Plan a job, and say what else there is to know.

    Args:
        job: the training run or the serving job.
        chip: the generation.
        on: the slice one has; its plan also says how much is left on it.

    Returns:
        The plan; with *on*, also its ``headroom_bytes`` and the ``largest`` of each side, the other as asked for;
        where it does not fit, the ``advice``.

    Raises:
        InputError: as ``plan_train`` and ``plan_serve``.

    >>> from tpu_systems_audit.chips import parse_slice
    >>> from tpu_systems_audit.sizing import Training
    >>> answer(Training(10**9), *parse_slice("v5litepod-8")).headroom_bytes > 80 * 2**30
    True
    """
    plan = plan_job(job, chip, on)
    if on is not None:
        plan = replace(plan, headroom_bytes=_headroom_bytes(plan, on), largest=_largest(job, chip, on))
    return plan if plan.fits else replace(plan, advice=tuple(_advice(job, plan)))


def _headroom_bytes(plan: Plan, on: Slice) -> int:
    """The bytes of a slice that the budget leaves free over all chips; negative when over it."""
    return floor(plan.budget * plan.generation.hbm_bytes * on.chips) - plan.required_bytes


def _largest(job: Job, chip: Generation, on: Slice) -> dict[str, int]:
    """The most that still fits on a slice, one side at a time; 0 means that not even one fits."""

    def fits(side: str, count: int) -> bool:
        changed: dict[str, Any] = {side: count}
        return plan_job(replace(job, **changed), chip, on).fits

    return {side: _most(partial(fits, side), MOST[side]) for side in job.sides}


def _advice(job: Job, plan: Plan) -> list[str]:
    """What would help where *plan* does not fit; every line was tried and fits."""
    chip, asked = plan.generation, plan.slice
    lines = []
    if asked is not None:
        larger = plan_job(job, chip)
        if larger.fits and larger.slice:
            lines.append(f"more chips: {larger.slice.accelerator_type} holds it")
    for words, other in job.smaller():
        tried = plan_job(other, chip, asked)
        if tried.fits and tried.slice:
            lines.append(f"{words}: {tried.slice.accelerator_type} holds it")
    for other_chip in generations():
        tried = plan_job(job, other_chip)
        if other_chip != chip and tried.fits and tried.slice:
            lines.append(f"another generation: {tried.slice.accelerator_type} ({tried.slice.chips} chips) holds it")
    return lines


def _most(fits: Callable[[int], bool], most: int) -> int:
    """The largest n up to *most* with fits(n), where a larger n never fits better; 0 when not even 1 does."""
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
