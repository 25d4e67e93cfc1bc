"""The question turned round: what fits on a slice one has, and what would help where nothing does."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import floor

from tpu_systems_audit.generations import Generation, Slice, generations
from tpu_systems_audit.memory import POLICIES
from tpu_systems_audit.plan import Plan, Serving, Training, plan_serve, plan_train

MOST_TOKENS = 2**26
MOST_SEQUENCES = 2**20

Job = Training | Serving


def plan_job(job: Job, chip: Generation, on: Slice | None = None) -> Plan:
    """Plan a training run or a serving job on one generation, or judge the slice *on*."""
    return plan_train(job, chip, on) if isinstance(job, Training) else plan_serve(job, chip, on)


def headroom_bytes(plan: Plan) -> int:
    """Count the bytes of the plan's slice that the budget leaves free over all chips; negative when over it.

    Args:
        plan: with a slice.
    """
    assert plan.slice is not None
    budgeted = plan.budget * plan.generation.hbm_bytes * plan.slice.chips
    return floor(budgeted) - plan.required_bytes


def largest(job: Job, chip: Generation, on: Slice) -> dict[str, int]:
    """Find the most that still fits on a slice, one side at a time, the other as asked for.

    Args:
        job: the run or the serving job.
        chip: the generation.
        on: the slice.

    Returns:
        ``largest_batch_per_chip`` and ``largest_sequence`` for training a model with layers, nothing for a bare
        count; ``largest_batch`` and ``largest_context`` for serving. 0 means that not even one fits.
    """
    if isinstance(job, Serving):
        return {
            "largest_batch": _most(lambda n: plan_serve(replace(job, batch=n), chip, on).fits, MOST_SEQUENCES),
            "largest_context": _most(lambda n: plan_serve(replace(job, context=n), chip, on).fits, MOST_TOKENS),
        }
    if isinstance(job.model, int):
        return {}
    return {
        "largest_batch_per_chip": _most(
            lambda n: plan_train(replace(job, batch_per_chip=n), chip, on).fits, MOST_SEQUENCES
        ),
        "largest_sequence": _most(lambda n: plan_train(replace(job, sequence=n), chip, on).fits, MOST_TOKENS),
    }


def advice(job: Job, plan: Plan) -> list[str]:
    """Say what would help where *plan* does not fit; every line was tried and fits.

    Args:
        job: what was asked.
        plan: the answer that does not fit.
    """
    chip, asked = plan.generation, plan.slice
    lines = []
    if asked is not None:
        larger = plan_job(job, chip)
        if larger.fits and larger.slice:
            lines.append(f"more chips: {larger.slice.accelerator_type} holds it")
    for words, other in _changes(job):
        answer = plan_job(other, chip, asked)
        if answer.fits and answer.slice:
            lines.append(f"{words}: {answer.slice.accelerator_type} holds it")
    for other_chip in generations():
        answer = plan_job(job, other_chip)
        if other_chip != chip and answer.fits and answer.slice:
            lines.append(f"another generation: {answer.slice.accelerator_type} ({answer.slice.chips} chips) holds it")
    return lines


def _changes(job: Job) -> Iterator[tuple[str, Job]]:
    """Changes to the job that make it smaller, one at a time."""
    if isinstance(job, Serving):
        if job.weights_dtype in ("fp32", "bf16"):
            yield "int8 weights", replace(job, weights_dtype="int8")
        if job.weights_dtype != "int4":
            yield "int4 weights", replace(job, weights_dtype="int4")
        if job.kv_dtype in ("fp32", "bf16"):
            yield "an int8 cache", replace(job, kv_dtype="int8")
        if job.batch > 1:
            yield "half the batch", replace(job, batch=job.batch // 2)
        return
    if job.remat == "none":
        yield "full remat", replace(job, remat="full")
    if job.optimizer in ("adam", "adamw"):
        yield "8-bit Adam", replace(job, optimizer="adam8bit")
    if job.policy.name != "pure-bf16":
        yield "the pure-bf16 policy", replace(job, policy=POLICIES["pure-bf16"])
    if job.batch_per_chip > 1:
        yield "half the batch per chip", replace(job, batch_per_chip=job.batch_per_chip // 2)


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
