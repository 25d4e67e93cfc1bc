"""Published ridge points and rooflines, each as calls of the package."""

from fractions import Fraction

from published.inputs import TERA, Inputs, Number, Route, chip, exact
from tpu_systems_audit.chips import Generation, generation, matmul_intensity, parse_slice, ridge_point, roofline
from tpu_systems_audit.units import GB, gib

# What the vendor's two figures give is asked of the package's own table, which a wrong figure there would fail.
VENDOR = {
    **dict.fromkeys(("rg-01", "rg-02"), ("v3", "bf16")),
    **dict.fromkeys(("rg-03", "rg-04", "rg-13"), ("v4", "bf16")),
    **dict.fromkeys(("rg-05", "rg-06"), ("v5e", "bf16")),
    **dict.fromkeys(("rg-07", "rg-08", "doc-19"), ("v5p", "bf16")),
    **dict.fromkeys(("rg-09", "rg-10", "rg-16"), ("v6e", "bf16")),
    **dict.fromkeys(("rg-11", "doc-20"), ("tpu7x", "bf16")),
    "doc-21": ("tpu7x", "fp8"),
}


def ridge(on: Generation, dtype: str = "bf16") -> Fraction:
    """The ridge point of a chip that has one, in FLOP/byte."""
    found = ridge_point(on, dtype)
    assert found is not None
    return found


def critical_batch(on: Generation, weight_bytes: int = 2, dtype: str = "bf16") -> Fraction:
    """Tokens at which 2 FLOP a token and weight reach the ridge point, activations neglected as the rule does.

    Args:
        on: the chip.
        weight_bytes: of one weight as it is read.
        dtype: of the arithmetic.

    >>> round(float(critical_batch(generation("v5e"))), 1)
    240.5
    """
    return ridge(on, dtype) * weight_bytes / 2


def tokens_at_ridge(on: Generation, d: int, f: int) -> Fraction:
    """Tokens at which an int8 (tokens, d) x (d, f) product reaches the ridge point, its activations counted.

    >>> tokens_at_ridge(chip(32e12, 1e12, "int8"), 64, 64), matmul_intensity(32, 64, 64, "int8")
    (Fraction(32, 1), Fraction(32, 1))
    """
    # For values of one byte, bytes over FLOP are (1/tokens + 1/d + 1/f) / 2: linear in 1/tokens.
    return 1 / (1 - 2 / matmul_intensity(1, d, f, "int8") + 2 / ridge(on, "int8"))


def seconds_at_peak(x: Inputs) -> Fraction:
    """The time of work that arithmetic bounds: at the ridge point the rate is the peak, whatever the bandwidth."""
    on = chip(x["peak_flops_per_s"])
    return exact(x["work_flops"]) / (roofline(on, ridge(on)).attainable_tflops * TERA)


def vector_ridge(x: Inputs) -> Fraction:
    """The ridge point of the vector units: a v5p chip has as many of them as TensorCores, its HBM is the chip's."""
    ordered = parse_slice("v5p-16")[1]
    cores = Fraction(ordered.accelerator_type.rpartition("-")[2]) / ordered.chips
    return ridge(chip(x["vpu_flops_per_s"] * int(cores), x["hbm_bytes_per_s"]))


def int8_ratio(x: Inputs) -> Fraction:
    """How much higher the int8 ridge point is: the bandwidth cancels."""
    return ridge(chip(x["int8"], dtype="int8"), "int8") / ridge(chip(x["bf16"]))


def bandwidth_gib(name: str) -> float:
    """A generation's HBM bandwidth in GiB/s."""
    return gib(generation(name).hbm_gb_per_s * GB)


def pcie_batch(x: Inputs) -> Fraction:
    """The critical batch where PCIe feeds the chip instead of HBM."""
    return critical_batch(chip(x["peak_flops_per_s"], x["pcie_bytes_per_s"]))


def _bf16(x: Inputs) -> Generation:
    return chip(x["flops_bf16_per_s"], x["hbm_bytes_per_s"])


def _vendor(name: str, dtype: str) -> Route:
    def route(_: Inputs) -> Number:
        return ridge(generation(name), dtype)

    return route


RATES: dict[str, Route] = {
    **{key: _vendor(*which) for key, which in VENDOR.items()},
    "sb-roof-03": lambda x: ridge(_bf16(x)),
    "sb-roof-05": vector_ridge,
    "sb-roof-10": lambda x: ridge(chip(x["sparse_flops_per_s"] / 2, x["hbm_bytes_per_s"])),
    "doc-05": lambda _: bandwidth_gib("v5e"),
    "rg-14": lambda _: bandwidth_gib("v6e"),
    "rg-28": int8_ratio,
    "rg-29": lambda x: ridge(chip(x["fp8"], x["hbm_bytes_per_s"], "fp8"), "fp8"),
    "sb-roof-01": seconds_at_peak,
    "sb-roof-02": seconds_at_peak,
    "sb-roof-04": lambda x: matmul_intensity(1, x["n"], 1),
    "sb-roof-07": lambda x: critical_batch(
        chip(x["peak_int8_ops_per_s"], x["hbm_bytes_per_s"], "int8"), x["weight_bytes"], "int8"
    ),
    "sb-roof-08": lambda x: critical_batch(_bf16(x), x["weight_bytes"]),
    "sb-roof-09": lambda x: matmul_intensity(1, x["d"], x["f"], "int8"),  # as many products as examples
    "sb-tpu-09": pcie_batch,
    "doc-37": pcie_batch,
    "sb-tpu-11": lambda x: tokens_at_ridge(
        chip(x["peak_int8_ops_per_s"], x["vmem_bytes_per_s"], "int8"), x["d"], x["f"]
    ),
    "sb-inf-13": lambda x: gib(x["chips"] * chip(1e12, x["hbm_bytes_per_s"]).hbm_gb_per_s * GB) / 1024,
    "sl-29": lambda x: critical_batch(_bf16(x)) * x["experts"] / x["top_k"],
}
