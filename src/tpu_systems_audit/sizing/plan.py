"""From bytes to chips, and from chips to the smallest slice one can order."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from tpu_systems_audit.chips import Generation, Slice
from tpu_systems_audit.models import Model
from tpu_systems_audit.sizing.activations import activation_bytes, margin_bytes
from tpu_systems_audit.sizing.jobs import BASES, DEFAULT_BUDGET, Job, Serving, Training
from tpu_systems_audit.sizing.memory import ServeState, TrainState, serve_state, train_state
from tpu_systems_audit.units import GB, InputError, gib, share, shown

SMALLEST_CACHE_GIB = 0.01  # of which it is worth saying that more chips do not shrink it


@dataclass(frozen=True)
class Plan:
    """What one generation answers, chips, slice and what fills a chip; bytes over all chips unless named.

    ``headroom_bytes`` and ``largest`` are for a slice that was asked about, ``advice`` for what does not fit.
    """

    generation: Generation
    basis: str
    budget: Fraction
    required_bytes: int
    min_chips: int
    slice: Slice | None
    parts_bytes: dict[str, int]
    activation_bytes_per_chip: int | None = None
    margin_bytes_per_chip: int | None = None
    short_bytes: int = 0
    decode_floor_ms: Fraction | None = None
    notes: tuple[str, ...] = ()
    headroom_bytes: int | None = None
    largest: dict[str, int] = field(default_factory=dict)
    advice: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the slice holds it, inside the budget, and activations with margin under the usable HBM."""
        return self.slice is not None and self.short_bytes == 0

    @property
    def state_bytes_per_chip(self) -> Fraction | None:
        """The required bytes on each chip of the slice."""
        return None if self.slice is None else Fraction(self.required_bytes, self.slice.chips)

    @property
    def fraction_of_hbm(self) -> Fraction | None:
        """The required bytes on each chip as a share of its nominal HBM."""
        state = self.state_bytes_per_chip
        return None if state is None else state / self.generation.hbm_bytes


def min_chips(required_bytes: int, hbm_bytes: int, budget: str | float | Fraction = DEFAULT_BUDGET) -> int:
    """Count the chips whose budgeted HBM holds *required_bytes*, exactly at the boundary too.

    Args:
        required_bytes: over all chips, at least 1.
        hbm_bytes: nominal HBM of a chip.
        budget: share of it that may be used, above 0 and at most 1.

    Raises:
        InputError: for a budget outside that range.

    >>> min_chips(12 * 7 * 10**9, 16 * 2**30)
    7
    """
    return ceil(required_bytes / (share(budget, "--budget") * hbm_bytes))


def plan_train(job: Training, chip: Generation, on: Slice | None = None) -> Plan:
    """Plan a training run on one generation.

    Args:
        job: the run; the activations of a bare count are unknown and left out.
        chip: the generation.
        on: ask about this slice instead of the smallest one.

    Raises:
        InputError: for an unknown basis, optimizer, remat or budget.

    >>> from tpu_systems_audit.chips import generation
    >>> plan_train(Training(7 * 10**9), generation("v5e")).slice.accelerator_type
    'v5litepod-16'
    """
    if job.basis not in BASES:
        raise InputError(f"--basis: {shown(job.basis)} is unknown; one of {' '.join(BASES)} is right")
    state = train_state(job.model, job.policy, job.optimizer)
    parts = {"weights": state.weights_bytes, "optimizer": state.optimizer_bytes}
    if job.basis == "peak":
        parts |= {"working_copy": state.working_copy_bytes, "gradients": state.gradients_bytes}
    activations = activations_per_chip(job, chip)

    def beside(chips: int) -> int:
        return 0 if activations is None else activations + margin_per_chip(chip, state.parameters, chips)

    plan = _plan(chip, parts, job.basis, job.budget, beside, on)
    if activations is not None:
        margin = None if plan.slice is None else margin_per_chip(chip, state.parameters, plan.slice.chips)
        plan = replace(plan, activation_bytes_per_chip=activations, margin_bytes_per_chip=margin)
    return replace(plan, notes=(*_train_notes(plan, state), *plan.notes))


def plan_serve(job: Serving, chip: Generation, on: Slice | None = None) -> Plan:
    """Plan serving on one generation, with the floor that HBM sets under one decode step.

    Args:
        job: the model, its dtypes, and the sequences to hold.
        chip: the generation.
        on: ask about this slice instead of the smallest one.

    Raises:
        InputError: for an unknown dtype or budget.

    The floor reads all weights and the whole cache once: a mixture of experts reads all of them at large batch.
    """
    state = serve_state(job.model, job.context, job.batch, job.weights_dtype, job.kv_dtype)
    parts = {
        "weights": state.weights_bytes,
        "weights_scales": state.weights_scale_bytes,
        "kv_cache": state.kv_cache_bytes,
        "kv_scales": state.kv_scale_bytes,
    }
    plan = _plan(chip, parts, "serving", job.budget, lambda chips: 0, on)
    if plan.slice is None:
        return plan
    floor_ms = decode_floor_ms(state.total_bytes, plan.slice.chips, chip)
    return replace(plan, decode_floor_ms=floor_ms, notes=(*_serve_notes(plan, state, job.model), *plan.notes))


def plan_job(job: Job, chip: Generation, on: Slice | None = None) -> Plan:
    """Plan a job of either kind, as ``plan_train`` or ``plan_serve`` does."""
    return _PLANNERS[job.kind](job, chip, on)


_PLANNERS: dict[str, Callable[..., Plan]] = {Training.kind: plan_train, Serving.kind: plan_serve}


def decode_floor_ms(total_bytes: int, chips: int, chip: Generation) -> Fraction:
    """Compute the least time of one decode step, in ms: every byte read once at full HBM bandwidth.

    Args:
        total_bytes: weights and cache, over all chips.
        chips: that read them side by side.
        chip: the generation.

    >>> from tpu_systems_audit.chips import generation
    >>> round(float(decode_floor_ms(400 * 10**9, 32, generation("v4"))), 2)
    10.42
    """
    return Fraction(total_bytes * 1000) / (chips * chip.hbm_gb_per_s * GB)


def activations_per_chip(job: Training, chip: Generation) -> int | None:
    """Estimate the activations on one chip, in bytes; its devices share the chip's sequences, each at least one.

    Args:
        job: the run; None comes back for a bare count.
        chip: the generation.

    Raises:
        InputError: for an unknown remat.
    """
    if isinstance(job.model, int):
        return None
    sequences = ceil(Fraction(job.batch_per_chip, chip.devices_per_chip))
    return chip.devices_per_chip * activation_bytes(job.model, job.sequence, sequences, job.remat)


def margin_per_chip(chip: Generation, parameters: int, chips: int) -> int:
    """The margin on one chip, over all its devices, in bytes."""
    return chip.devices_per_chip * margin_bytes(parameters, chips * chip.devices_per_chip)


def _plan(
    chip: Generation,
    parts: dict[str, int],
    basis: str,
    budget: Fraction,
    beside: Callable[[int], int],
    on: Slice | None,
) -> Plan:
    """Find the smallest slice, or judge the one asked for; *beside* gives the bytes beside the state on a chip."""
    budget = share(budget, "--budget")
    required = sum(parts.values())
    need = min_chips(required, chip.hbm_bytes, budget)

    def short(candidate: Slice) -> int:
        over_budget = required - budget * chip.hbm_bytes * candidate.chips
        per_chip = Fraction(required, candidate.chips) + beside(candidate.chips)
        over_usable = (per_chip - chip.usable_hbm_bytes) * candidate.chips
        return max(0, ceil(over_budget) if over_budget > 0 else ceil(over_usable))

    chosen = on or next((s for s in chip.slices if s.chips >= need and short(s) == 0), None)
    missing = short(chosen or chip.slices[-1])
    notes = [note for note in (chip.note, chosen.note if chosen else "") if note]
    by_budget = next((s for s in chip.slices if s.chips >= need), None)
    if on is None and chosen and by_budget and chosen.chips > by_budget.chips:
        notes.append(
            f"{by_budget.accelerator_type} holds the state inside the budget, but not what stands beside it "
            f"under the usable HBM"
        )
    return Plan(chip, basis, budget, required, need, chosen, parts, short_bytes=missing, notes=tuple(notes))


def _train_notes(plan: Plan, state: TrainState) -> list[str]:
    """What a reader of the numbers would otherwise get wrong."""
    notes = []
    if plan.activation_bytes_per_chip is None:
        notes.append("activations are not in it: a bare count has no layers; name a model to have them estimated")
    chips_by_resident = min_chips(state.resident_bytes, plan.generation.hbm_bytes, plan.budget)
    chips_by_peak = min_chips(state.peak_bytes, plan.generation.hbm_bytes, plan.budget)
    if plan.basis == "peak" and chips_by_resident < chips_by_peak:
        notes.append(
            f"the resident state alone would take {chips_by_resident}, but a step needs the peak: {chips_by_peak} chips"
        )
    if plan.basis == "resident" and plan.slice and plan.slice.chips < chips_by_peak:
        at_peak = Fraction(state.peak_bytes, plan.slice.chips) / plan.generation.hbm_bytes
        notes.append(
            f"the resident state fits, the peak does not: a step needs {float(at_peak):.1%} of each chip's HBM "
            f"before activations; by the peak it takes {chips_by_peak} chips"
        )
    return notes


def _serve_notes(plan: Plan, state: ServeState, model: Model) -> list[str]:
    """Where the context is too long for the model, and where the cache per chip stops shrinking."""
    assert plan.slice is not None
    notes = list(model.beyond_positions(state.context))
    # One scale per KV head for K and one for V; an MLA latent has a single one and cannot be split by heads.
    heads = max(1, min(run.scales_per_token for run in model.caches) // 2)
    if plan.slice.chips <= heads:
        return notes
    cache = gib(Fraction(state.kv_cache_bytes + state.kv_scale_bytes, heads))
    if cache < SMALLEST_CACHE_GIB:
        return notes
    return [
        *notes,
        f"more chips ({plan.slice.chips}) than KV heads ({heads}): sharded by heads alone, heads are replicated or "
        f"padded and the cache stays at {cache:.2f} GiB a chip; shard the batch too",
    ]
