"""Numbers are read exactly, and what is no number is refused in one line."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_systems_audit.units import GIB, InputError, dtype_bits, gib, number, share, shown, whole


@given(st.integers(1, 10**18))
def test_whole_reads_back_every_count(count: int) -> None:
    assert whole(str(count), "n") == count


@given(st.integers(1, 10**15), st.integers(0, 3))
def test_whole_reads_exponents_exactly(count: int, power: int) -> None:
    assert whole(f"{count}e{power}", "n") == count * 10**power


@pytest.mark.parametrize(
    "text", ["", " ", "x", "nan", "inf", "-1", "-7e9", "0", "1.5", "1e400", "1e19", "0x10", "1e", "٣", "1__0", "--"]
)
def test_whole_refuses_in_one_line_naming_the_input(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        whole(text, "parameters")
    assert str(refusal.value).startswith("parameters: ")
    assert "is right" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["0", "1.5", "nan", "-0.1", "", "inf", "0.0"])
def test_share_refuses_what_is_not_above_0_and_at_most_1(text: str) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        share(text, "--budget")


@given(st.integers(1, 1000))
def test_share_takes_a_float_as_the_decimal_it_was_written_as(thousandths: int) -> None:
    assert share(thousandths / 1000, "budget") == Fraction(thousandths, 1000)


@given(st.text(max_size=30))
def test_number_either_reads_or_refuses(text: str) -> None:
    try:
        assert number(text, "n") >= 0
    except InputError as refusal:
        assert "\n" not in str(refusal)


def test_a_long_input_is_shown_shortened_and_escaped() -> None:
    assert len(shown("x" * 1000)) <= 60
    assert "\x1b" not in shown("\x1b[31m")


def test_gib_is_two_to_the_thirty() -> None:
    assert gib(GIB) == 1.0
    assert gib(10**9) == pytest.approx(0.931322574615478)


def test_a_dtype_that_makes_no_sense_there_is_refused() -> None:
    with pytest.raises(InputError, match="bf16 fp32"):
        dtype_bits("int4", "--kv-dtype", ("bf16", "fp32"))
