"""Rounding, quantization, products and bounds: published values, and properties over drawn inputs."""

import hashlib
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_systems_audit.precision import (
    METHODS,
    bf16_accumulated_matmul,
    bf16_matmul,
    bf16_round,
    bounds,
    difference,
    exact_product,
    int8_dot,
    int8_matmul,
    method_error,
    quantize_int8,
    quantized_operands,
    summarize,
)
from tpu_systems_audit.units import InputError

CASES = {
    case["id"]: case
    for case in tomllib.loads((Path(__file__).parents[1] / "cases/precision.toml").read_text(encoding="utf-8"))["case"]
}


def of(*functions: str) -> list[dict]:
    return [case for case in CASES.values() if case["fn"] in functions]


def cases(*functions: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", of(*functions), ids=[case["id"] for case in of(*functions)])


def operands(given_: dict) -> tuple[np.ndarray, np.ndarray]:
    if "seed" in given_:
        draw = np.random.default_rng(given_["seed"])
        a, b = (draw.standard_normal(given_[key]).astype(np.float32) for key in ("a_shape", "b_shape"))
        if "then" in given_:
            assert given_["then"] == "b[:,1] *= 64"
            b[:, 1] *= 64
        return a, b
    if "fill" in given_:
        return (np.full(given_[key], given_["fill"], np.float32) for key in ("a_shape", "b_shape"))
    return np.array(given_["a"], np.float32), np.array(given_["b"], np.float32)


# Published values


@cases("bf16_round")
def test_a_value_is_rounded_to_the_nearest_bfloat16(case: dict) -> None:
    bits = case["inputs"].get("x_bits")
    x = np.array(int(bits, 16), np.uint32).view(np.float32) if bits else np.float32(case["inputs"]["x"])
    got, expected = float(bf16_round(x)), case["expected"]
    if expected.get("isnan"):
        assert math.isnan(got)
    else:
        assert (got, math.copysign(1, got)) == (expected["value"], math.copysign(1, expected["value"]))


@pytest.mark.filterwarnings("ignore:overflow encountered")  # mm-overflow is about it
@cases("bf16_matmul")
def test_a_bf16_product_is_as_published(case: dict) -> None:
    a, b = operands(case["inputs"])
    expected, got = case["expected"], bf16_matmul(a, b).astype(np.float64)
    if "out" in expected:
        assert got.tolist() == expected["out"]
    else:
        rounded = [bf16_round(each).astype(np.float64) for each in (a, b)]
        room = (a.shape[1] - 1) * 2.0**-24 * (np.abs(rounded[0]) @ np.abs(rounded[1]))
        assert np.all(np.abs(got - expected["rounded_product"]) <= room)
    if "exact" in expected:
        assert np.allclose(exact_product(a, b), expected["exact"], rtol=1e-12)
    if "bound" in expected:
        assert np.allclose(bounds.bf16_bound(a, b), expected["bound"], rtol=1e-12)
        assert np.all(np.abs(got - exact_product(a, b)) <= bounds.bf16_bound(a, b))
    if "bf16_accumulation" in expected:
        narrow = np.ravel(bf16_accumulated_matmul(a, b)).tolist()
        assert narrow == np.ravel(expected["bf16_accumulation"]).tolist()


@cases("bf16_bound")
def test_a_bound_is_as_published(case: dict) -> None:
    assert np.allclose(bounds.bf16_bound(*operands(case["inputs"])), case["expected"]["bound"], rtol=1e-12)


@cases("bf16_accumulation_factor")
def test_the_factor_of_bf16_sums_exists_for_every_k(case: dict) -> None:
    factors = [bounds.bf16_accumulation_factor(length) for length in case["inputs"]["K"]]
    assert factors == pytest.approx(case["expected"]["factor"], rel=1e-12)


@cases("int8_quantize", "int8_quantize_per_channel")
def test_a_quantization_is_as_published(case: dict) -> None:
    inputs, expected = case["inputs"], case["expected"]
    if "seed" in inputs:
        x = np.random.default_rng(inputs["seed"]).standard_normal(inputs["shape"]).astype(np.float32)
    else:
        x = np.array(inputs["x"], np.float32)
    axis = inputs.get("reduce_axis")
    if "raises" in expected or "accept" in expected:  # where no normal scale exists, we refuse
        with pytest.raises(InputError):
            quantize_int8(x, axis)
        return
    codes, scale = (found := quantize_int8(x, axis)).codes, found.scale
    assert (codes.dtype, scale.dtype, scale.ndim) == (np.int8, np.float32, x.ndim)
    assert np.all(np.isfinite(scale) & (scale > 0))
    if "codes" in expected:
        assert codes.tolist() == expected["codes"]
    if "code_sum" in expected:
        assert (int(codes.sum()), int(np.abs(codes.astype(int)).sum())) == (
            expected["code_sum"],
            expected["code_abs_sum"],
        )
        assert hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest() == expected["sha256_c_order_int8"]
    for key in ("scale", "scales"):
        if key in expected:
            assert np.allclose(np.ravel(scale), expected[key], rtol=2**-23)
    if "scale_row1" in expected:
        assert float(scale[1, 0]) == pytest.approx(expected["scale_row1"], rel=2**-23)
    if "max_error" in expected:
        error = np.abs(x.astype(np.float64) - codes.astype(np.float64) * scale.astype(np.float64))
        assert float(error.max()) == pytest.approx(expected["max_error"], rel=1e-6)
        assert float(error.max()) <= float(scale.max()) / 2 * (1 + 2**-17)


@cases("int8_matmul")
def test_an_int8_product_is_as_published(case: dict) -> None:
    inputs, expected = case["inputs"], case["expected"]
    if "K" in inputs:
        a, b = (np.full(shape, inputs["fill"], np.int8) for shape in ((1, inputs["K"]), (inputs["K"], 1)))
        if "int32" in expected:  # beyond the limit, where a bound is refused
            assert inputs["K"] > bounds.int32_k_limit(inputs["fill"])
            with pytest.raises(InputError, match="K"):
                bounds.int8_bound(np.ones((1, 2 * inputs["K"])), np.ones((2 * inputs["K"], 1)))
        assert int8_dot(a, b).tolist() == [[expected.get("acc", expected.get("int32"))]]
        return
    if "acc" in expected:
        if "seed" in inputs:
            draw = np.random.default_rng(inputs["seed"])
            a, b = (draw.integers(-127, 128, inputs[key]).astype(np.int8) for key in ("a_shape", "b_shape"))
        else:
            a, b = np.array(inputs["a"], np.int8), np.array(inputs["b"], np.int8)
        got = int8_dot(a, b)
        assert (got.dtype, got.tolist()) == (np.int32, expected["acc"])
        return
    a, b = operands(inputs)
    exact = exact_product(a, b)
    for per_channel, name in ((True, "channel"), (False, "tensor")):
        left, right = quantized_operands(a, b, per_channel)
        assert int8_dot(left.codes, right.codes).tolist() == expected[f"acc_per_{name}"]
        got = difference(int8_matmul(a, b, per_channel), exact).rel_fro
        assert got == pytest.approx(expected[f"rel_fro_per_{name}"], rel=1e-4)
    assert np.allclose(int8_matmul(a, b), expected["out_per_channel"], rtol=1e-6)
    assert np.allclose(bounds.int8_bound(a, b), expected["bound_per_channel"], rtol=1e-6)


@cases("int8_k_limit")
def test_the_limits_of_k_are_as_published(case: dict) -> None:
    found = [limit(lowest) for limit in (bounds.int32_k_limit, bounds.float32_k_limit) for lowest in (-127, -128)]
    assert found == [case["expected"][key] for key in ("k_127", "k_128", "f32_exact_127", "f32_exact_128")]


@cases("error_summary")
def test_an_error_is_as_published(case: dict) -> None:
    inputs, expected = case["inputs"], case["expected"]
    if "raises" in expected:
        with pytest.raises(InputError):
            difference(np.ones(inputs["got_shape"]), np.ones(inputs["ref_shape"]))
        return
    found = difference(inputs["got"], inputs["ref"])
    assert (found.max_abs, found.rel_fro) == pytest.approx((expected["max_abs"], expected["rel_fro"]), nan_ok=True)


def test_every_case_is_asked_of_some_test() -> None:
    asked = {"bf16_round", "bf16_matmul", "bf16_bound", "bf16_accumulation_factor", "int8_quantize",
             "int8_quantize_per_channel", "int8_matmul", "int8_k_limit", "error_summary"}  # fmt: skip
    assert {case["fn"] for case in CASES.values()} == asked


# Properties

FLOATS = st.floats(-(2.0**60), 2.0**60, width=32)
SIZES = st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 7, 64, 300]), st.integers(1, 3))
KINDS: dict[str, Callable[[np.random.Generator, tuple], np.ndarray]] = {
    "normal": lambda draw, shape: draw.standard_normal(shape),
    "positive": lambda draw, shape: draw.random(shape),
    "ones": lambda draw, shape: np.ones(shape),
    "of all sizes": lambda draw, shape: draw.standard_normal(shape) * 2.0 ** draw.integers(-30, 30, shape),
    "ties": lambda draw, shape: 1 + 2.0**-8 * draw.integers(0, 8, shape),
    "tiny": lambda draw, shape: draw.standard_normal(shape) * 2.0**-66,
}


@st.composite
def products(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    m, length, n = draw(SIZES)
    source = np.random.default_rng(draw(st.integers(0, 2**32)))
    left, right = KINDS[draw(st.sampled_from(sorted(KINDS)))], KINDS[draw(st.sampled_from(sorted(KINDS)))]
    return left(source, (m, length)).astype(np.float32), right(source, (length, n)).astype(np.float32)


@given(st.floats(width=32))
def test_rounding_is_that_of_ml_dtypes(x: float) -> None:
    expected = np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(bf16_round(x), expected, equal_nan=True)


@settings(deadline=None, max_examples=60)
@given(products())
def test_no_element_of_a_bf16_product_is_beyond_its_bound(pair: tuple[np.ndarray, np.ndarray]) -> None:
    room = bounds.bf16_bound(*pair) + bounds.reference_bound(*pair)
    assert np.all(np.abs(bf16_matmul(*pair) - exact_product(*pair)) <= room)


@settings(deadline=None, max_examples=60)
@given(products())
def test_no_element_of_a_bf16_accumulated_product_is_beyond_its_bound(pair: tuple[np.ndarray, np.ndarray]) -> None:
    room = bounds.bf16_accumulation_bound(*pair) + bounds.reference_bound(*pair)
    assert np.all(np.abs(bf16_accumulated_matmul(*pair) - exact_product(*pair)) <= room)


@settings(deadline=None, max_examples=60)
@given(products(), st.booleans())
def test_no_element_of_an_int8_product_is_beyond_its_bound(
    pair: tuple[np.ndarray, np.ndarray], per_channel: bool
) -> None:
    got = int8_matmul(*pair, per_channel)
    room = bounds.int8_bound(*pair, per_channel) + bounds.rescale_bound(got) + bounds.reference_bound(*pair)
    assert np.all(np.abs(got - exact_product(*pair)) <= room)


@given(st.lists(FLOATS, min_size=1, max_size=20))
def test_a_code_is_half_a_step_from_its_value_and_the_largest_is_127(values: list[float]) -> None:
    x = np.array(values, np.float32)
    absmax = float(np.abs(x).max())
    if 0 < absmax < 127 * 2.0**-126:
        with pytest.raises(InputError, match="too small"):
            quantize_int8(x, None)
        return
    found = quantize_int8(x, None)
    scale = found.scale.astype(np.float64)
    assert np.all(np.abs(x.astype(np.float64) - found.codes * scale) <= scale / 2 * (1 + 2**-17))
    assert int(np.abs(found.codes.astype(int)).max()) == (127 if absmax else 0)


@settings(deadline=None)
@given(st.sampled_from([1, 2, 7, 64, 1041, 2000]), st.integers(0, 2**32))  # a length is compiled once
def test_int32_sums_of_codes_are_exact(length: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = draw.integers(-127, 128, (2, length)), draw.integers(-127, 128, (length, 2))
    assert int8_dot(a.astype(np.int8), b.astype(np.int8)).tolist() == (a @ b).tolist()


# Tight, and able to fail


def truncated(x: Any) -> np.ndarray:
    return (np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def test_operands_that_are_truncated_break_the_bound() -> None:
    x, w = np.full((1, 64), 1 + 2**-7 - 2**-20, np.float32), np.full((64, 1), 1 + 2**-7 - 2**-20, np.float32)
    wrong = truncated(x).astype(np.float64) @ truncated(w).astype(np.float64)
    assert np.all(np.abs(wrong - exact_product(x, w)) > bounds.bf16_bound(x, w))


def test_bf16_sums_break_the_bound_of_float32_sums() -> None:
    ones = np.ones((1, 4096), np.float32), np.ones((4096, 1), np.float32)
    assert np.all(np.abs(bf16_accumulated_matmul(*ones) - 4096) > bounds.bf16_bound(*ones))


def test_ties_come_within_a_hundredth_of_the_bound() -> None:
    x, w = np.full((1, 1), 1 + 2**-8, np.float32), np.full((1, 1), 1 + 2**-8, np.float32)
    error = np.abs(bf16_matmul(x, w) - exact_product(x, w))
    assert np.all(error > 0.98 * bounds.bf16_bound(x, w))


def test_a_scale_of_128_breaks_the_bound_of_int8() -> None:
    x = np.full((1, 8), 127.0, np.float32)
    w = np.full((8, 1), 127.0, np.float32)
    wrong = np.clip(np.rint(x / (127 / 128)), -127, 127) * (127 / 128) @ (np.full((8, 1), 127) * (127 / 128))
    assert np.all(np.abs(wrong - exact_product(x, w)) > bounds.int8_bound(x, w))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bound_that_does_not_exist_is_refused_in_one_line(value: float) -> None:
    x = np.array([[1.0, value]], np.float32)
    for bound in (bounds.bf16_bound, bounds.int8_bound, bounds.bf16_accumulation_bound):
        with pytest.raises(InputError) as refusal:
            bound(x, np.ones((2, 1)))
        assert "\n" not in f"{refusal.value}"


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3,), (3, 1)), ((2, 3), (4, 1))], ids=str)
def test_operands_that_do_not_fit_are_refused(shapes: tuple) -> None:
    for product in (bf16_matmul, bf16_accumulated_matmul, int8_matmul, exact_product):
        with pytest.raises(InputError):
            product(np.ones(shapes[0]), np.ones(shapes[1]))


def test_the_summary_has_every_method_within_its_bound() -> None:
    found = summarize((8, 96, 8), seed=3)
    assert tuple(found.errors) == METHODS
    assert all(error.within_bound for error in found.errors.values())
    assert found.errors["bf16"].max_abs < found.errors["bf16_accumulated"].max_abs


def test_a_method_that_misses_its_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tpu_systems_audit.precision import summary as precision_summary

    monkeypatch.setitem(precision_summary._METHODS, "bf16", (lambda x, w: bf16_matmul(x, w) * 1.5, bounds.bf16_bound))
    assert not method_error("bf16", np.ones((2, 8)), np.ones((8, 2))).within_bound
