"""The smallest slice one can order, exact at the boundary, and never one that the compiler refused."""

import json
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_systems_audit.chips import generation, generations, parse_slice
from tpu_systems_audit.models import from_config, load, model_names
from tpu_systems_audit.sizing import (
    POLICIES,
    Serving,
    Training,
    answer,
    decode_floor_ms,
    margin_per_chip,
    min_chips,
    plan_serve,
    plan_train,
)
from tpu_systems_audit.units import GIB, InputError

PROOFS = json.loads((Path(__file__).parents[1] / "cases" / "proofs.json").read_text())

budgets = st.integers(1, 100).map(lambda percent: Fraction(percent, 100))
chips = st.sampled_from(generations())


def proof_model(name: str):
    """The proofs' model: a bundled one, or Llama 3.2 1B with its head untied."""
    if not name.endswith("-untied"):
        return load(name)
    config = Path(__file__).parents[2] / "src/tpu_systems_audit/models/bundled" / f"{name.removesuffix('-untied')}.json"
    return from_config(json.loads(config.read_text()) | {"tie_word_embeddings": False}, name)


@given(st.integers(1, 10**13), chips, budgets)
def test_min_chips_is_the_least_number_that_holds_it(required: int, chip, budget: Fraction) -> None:
    count = min_chips(required, chip.hbm_bytes, budget)
    assert count * budget * chip.hbm_bytes >= required
    assert (count - 1) * budget * chip.hbm_bytes < required


@given(st.integers(1, 1000), chips, budgets)
def test_a_full_number_of_chips_takes_no_chip_more(count: int, chip, budget: Fraction) -> None:
    exactly = int(count * budget * chip.hbm_bytes)
    assert min_chips(exactly, chip.hbm_bytes, budget) == count


@given(st.integers(10**6, 10**12), chips, st.sampled_from(sorted(POLICIES)), st.sampled_from(["0.5", "0.8", "0.9"]))
def test_a_bare_counts_slice_is_the_smallest_with_min_chips(count: int, chip, policy: str, budget: str) -> None:
    plan = plan_train(Training(count, POLICIES[policy], budget=Fraction(budget)), chip)
    enough = [s for s in chip.slices if s.chips >= plan.min_chips]
    assert plan.slice == (enough[0] if enough else None)
    assert plan.fits == bool(enough)
    assert (plan.short_bytes > 0) == (not enough)
    assert plan.activation_bytes_per_chip is None is plan.margin_bytes_per_chip


@pytest.mark.parametrize("chip", generations(), ids=lambda chip: chip.name)
def test_no_legal_slice_is_smaller_than_the_one_planned_for_any_need(chip) -> None:
    sizes = sorted({s.chips for s in chip.slices})
    for need in range(1, sizes[-1] + 1):
        plan = plan_train(Training(need * chip.hbm_bytes * 4 // 5 // 16), chip)
        assert plan.min_chips == need
        assert plan.slice.chips == next(size for size in sizes if size >= need)


@pytest.mark.parametrize(
    ("count", "name", "need", "accelerator_type"),
    [(9 * 10**11, "v5p", 177, "v5p-384"), (27 * 10**11, "v5p", 530, "v5p-1152"), (32 * 10**10, "v4", 187, "v4-384")],
)
def test_the_slices_between_powers_of_two_are_planned_too(
    count: int, name: str, need: int, accelerator_type: str
) -> None:
    plan = plan_train(Training(count), generation(name))
    assert (plan.min_chips, plan.slice.accelerator_type) == (need, accelerator_type)


@pytest.mark.parametrize(
    ("basis", "count", "accelerator_type"), [("peak", 9, "v5litepod-16"), ("resident", 7, "v5litepod-8")]
)
def test_seven_billion_parameters_on_v5e(basis: str, count: int, accelerator_type: str) -> None:
    plan = plan_train(Training(7 * 10**9, basis=basis), generation("v5e"))
    assert (plan.min_chips, plan.slice.accelerator_type) == (count, accelerator_type)
    assert any("peak" in note for note in plan.notes)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda p: f"{p['model']}-{p['topology']}-{p['sequence']}-{p['remat']}")
def test_no_program_the_compiler_refused_is_said_to_fit(proof: dict) -> None:
    """Where the compiler fitted it, the estimate is never below its peak."""
    model = proof_model(proof["model"])
    chip, on = parse_slice(proof["topology"])
    job = Training(model, sequence=proof["sequence"], remat=proof["remat"], budget=Fraction(1))
    devices = proof["devices"] // on.chips  # two where v4 was compiled with a device per core
    chip = replace(chip, devices_per_chip=devices)
    plan = plan_train(replace(job, batch_per_chip=devices * proof["batch_per_chip"]), chip, on)
    assert model.parameters == proof["parameters"]
    if not proof["fits"]:
        assert not plan.fits
        return
    estimate = plan.state_bytes_per_chip + plan.activation_bytes_per_chip + plan.margin_bytes_per_chip
    assert estimate >= proof["peak_bytes"] * devices


def test_activations_move_the_slice_where_the_state_alone_would_not() -> None:
    """13 B on v5litepod-16: 76 % by the state, inside the budget, refused by the compiler."""
    job = Training(load("llama-2-13b"))
    plan = plan_train(job, generation("v5e"))
    assert plan.min_chips <= 16 < plan.slice.chips
    assert any("v5litepod-16" in note for note in plan.notes)


@given(st.sampled_from(model_names()), chips, st.integers(1, 8))
def test_what_stands_on_a_chip_stays_under_its_usable_hbm(name: str, chip, batch: int) -> None:
    plan = plan_train(Training(load(name), batch_per_chip=batch), chip)
    if plan.fits:
        on_chip = plan.state_bytes_per_chip + plan.activation_bytes_per_chip + plan.margin_bytes_per_chip
        assert on_chip <= chip.usable_hbm_bytes
        assert plan.slice.chips >= plan.min_chips


@given(st.sampled_from(model_names()), chips, st.integers(1, 10**5), st.integers(1, 256))
def test_serving_never_takes_fewer_chips_for_a_longer_context(name: str, chip, context: int, batch: int) -> None:
    job = Serving(load(name), context, batch)
    plan, longer = plan_serve(job, chip), plan_serve(replace(job, context=2 * context), chip)
    assert plan.min_chips <= longer.min_chips
    if plan.slice and longer.slice:
        assert plan.decode_floor_ms > 0


@given(st.integers(1, 10**13), st.integers(1, 9216), chips)
def test_the_decode_floor_reads_every_byte_once(total: int, count: int, chip) -> None:
    seconds = decode_floor_ms(total, count, chip) / 1000
    assert seconds * count * chip.hbm_gb_per_s * 10**9 == total


def test_more_chips_than_kv_heads_is_said() -> None:
    plan = plan_serve(Serving(load("llama-3-70b"), 8192, 32), generation("v5e"))
    assert plan.slice.chips > 8
    assert any("KV heads (8)" in note for note in plan.notes)
    mla = plan_serve(Serving(load("deepseek-v3"), 8192, 32), generation("v5p"))
    assert any("KV heads (1)" in note for note in mla.notes)


def test_tpu7x_says_how_it_is_ordered() -> None:
    plan = plan_train(Training(7 * 10**9), generation("tpu7x"))
    assert any("Compute Engine or GKE" in note for note in plan.notes)


def test_what_fits_nowhere_says_by_how_much_and_what_would_help() -> None:
    job = Training(405 * 10**9)
    plan = answer(job, generation("v5e"))
    assert not plan.fits
    assert plan.slice is plan.state_bytes_per_chip is plan.fraction_of_hbm is None
    budgeted = Fraction(4, 5) * 16 * GIB * 256
    assert plan.short_bytes == ceil(16 * 405 * 10**9 - budgeted)
    assert any("pure-bf16" in line and "v5litepod-256" in line for line in plan.advice)
    assert any("v5p-" in line for line in plan.advice)


def test_full_remat_or_another_generation_is_advised_where_activations_do_not_fit() -> None:
    job = Training(load("llama-2-7b"), remat="none")
    plan = answer(job, generation("v5e"))
    assert not plan.fits
    assert any(line.startswith("full remat: v5litepod-16") for line in plan.advice)
    assert any(line.startswith("another generation: v5p-8") for line in plan.advice)


@pytest.mark.parametrize("text", ["v5litepod-8", "v5p-16", "v6e-4", "v3-8", "tpu7x-8"])
@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-2-9b", "deepseek-v3"])
def test_the_largest_that_fits_fits_and_one_more_does_not(text: str, name: str) -> None:
    chip, on = parse_slice(text)
    for job in (Serving(load(name), 4096, 4), Training(load(name))):
        largest = answer(job, chip, on).largest
        assert tuple(largest) == job.sides
        for side, most in largest.items():
            assert not answer(replace(job, **{side: most + 1}), chip, on).fits
            assert most == 0 or answer(replace(job, **{side: most}), chip, on).fits


def test_headroom_is_what_the_budget_leaves_and_negative_when_over_it() -> None:
    chip, on = parse_slice("v5litepod-8")
    assert answer(Training(10**9), chip, on).headroom_bytes == int(Fraction(4, 5) * 8 * 16 * GIB) - 16 * 10**9
    assert answer(Training(10**11), chip, on).headroom_bytes < 0
    assert answer(Training(10**9), chip).headroom_bytes is None, "a slice that was not asked about has none"


def test_a_basis_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="peak resident is right"):
        plan_train(Training(10**9, basis="average"), generation("v5e"))


@given(st.integers(1, 10**12), st.integers(1, 10**4), chips)
def test_the_margin_shrinks_with_chips_to_a_fixed_floor(parameters: int, count: int, chip) -> None:
    margin = margin_per_chip(chip, parameters, count)
    assert margin >= margin_per_chip(chip, parameters, 2 * count) >= chip.devices_per_chip * GIB // 4
