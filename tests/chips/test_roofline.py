"""A roofline never beats either bound."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_systems_audit.chips import PEAK_DTYPES, generation, generations, matmul_intensity, ridge_point, roofline
from tpu_systems_audit.units import InputError

PAIRS = [(chip, dtype) for chip in generations() for dtype in PEAK_DTYPES if chip.peak_tflops(dtype)]
intensities = st.fractions(Fraction(1, 10**6), 10**7)
sides = st.integers(1, 10**5)


@given(st.sampled_from(PAIRS), intensities)
def test_attainable_is_the_lesser_of_peak_and_bandwidth(pair: tuple, intensity: Fraction) -> None:
    chip, dtype = pair
    point = roofline(chip, intensity, dtype)
    assert point.attainable_tflops <= chip.peak_tflops(dtype)
    assert point.attainable_tflops * 1000 <= intensity * chip.hbm_gb_per_s
    assert (point.fraction_of_peak == 1) == (point.bound == "compute")


@pytest.mark.parametrize(("chip", "dtype"), PAIRS)
def test_at_the_ridge_a_kernel_is_compute_bound_and_just_below_it_is_not(chip: object, dtype: str) -> None:
    ridge = ridge_point(chip, dtype)
    assert roofline(chip, ridge, dtype).bound == "compute"
    assert roofline(chip, ridge * Fraction(10**12 - 1, 10**12), dtype).bound == "hbm"


def test_the_study_guides_starting_point_is_hbm_bound() -> None:
    point = roofline(generation("v5e"), Fraction(170))
    assert point.bound == "hbm"
    assert float(point.ridge_flop_per_byte) == pytest.approx(240.53724053724054, rel=1e-15)


@given(sides, sides, sides)
def test_intensity_grows_with_every_side(m: int, k: int, n: int) -> None:
    base = matmul_intensity(m, k, n)
    assert base <= min(matmul_intensity(m + 1, k, n), matmul_intensity(m, k + 1, n), matmul_intensity(m, k, n + 1))
    assert base < min(m, k, n)
    assert matmul_intensity(m, k, n, "int8") == 2 * base


def test_a_peak_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InputError, match="tpu7x has no int8 peak; bf16 fp8 is right"):
        roofline(generation("tpu7x"), Fraction(170), "int8")
    assert ridge_point(generation("v3"), "int8") is None
