"""How the error of a dot product grows with its length, beside what bounds it, as SVG.

NumPy is imported when a figure is drawn, so that importing this module costs nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tpu_systems_audit.course.plots import HUES, INK, Plot, canvas, svg_text

if TYPE_CHECKING:
    import numpy as np

LENGTHS = tuple(2**power for power in range(2, 13))
ROWS = 24
F32_ROUNDOFF = 2.0**-24


def drift_plot(seed: int = 0) -> Plot:
    """Draw the largest error over many dot products of each length, relative to S, for bf16 and float32 sums.

    S is the sum of the products' magnitudes: the bound scales with it, not with the result.

    Args:
        seed: draws the operands.
    """
    import numpy as np

    from tpu_systems_audit.precision import bf16_accumulated_matmul, bf16_accumulation_factor, bf16_matmul

    draw = np.random.default_rng(seed)
    kinds: dict[str, Callable[[tuple[int, int]], np.ndarray]] = {
        "uniform on 0 to 1": lambda shape: draw.random(shape),
        "standard normal": lambda shape: draw.standard_normal(shape),
        "all ones": lambda shape: np.ones(shape),
    }
    figure, axes = canvas(5)
    last = {}
    for hue, (kind, drawn) in zip(HUES, kinds.items(), strict=False):
        pairs = [(_rounded(drawn((ROWS, length))), _rounded(drawn((length, 1)))) for length in LENGTHS]
        narrow = [_drift(x, w, bf16_accumulated_matmul(x, w)) for x, w in pairs]
        wide = [_drift(x, w, bf16_matmul(x, w)) for x, w in pairs]
        axes.plot(LENGTHS, narrow, color=hue, marker="o", markersize=3, label=f"bf16 sums, {kind}")
        axes.plot(LENGTHS, wide, color=hue, marker="o", markersize=3, linestyle="--", label=f"float32 sums, {kind}")
        last[kind] = narrow[-1], wide[-1]
    narrow_bound = [bf16_accumulation_factor(length) for length in LENGTHS]
    wide_bound = [(length - 1) * F32_ROUNDOFF for length in LENGTHS]
    axes.plot(LENGTHS, narrow_bound, color=INK, linewidth=1, label="bound of bf16 sums")
    axes.plot(LENGTHS, wide_bound, color=INK, linewidth=1, linestyle="--", label="bound of float32 sums")
    axes.set(xscale="log", yscale="log", xlabel="K, products in one sum", ylabel="largest error / S")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    told = "; ".join(f"{kind}, {a:.1e} and {b:.1e}" for kind, (a, b) in last.items())
    alt = (
        f"Largest error relative to S against K from {LENGTHS[0]} to {LENGTHS[-1]}, on logarithmic axes. "
        f"At the right end, bf16 and float32 sums: {told}. Every point lies under its bound."
    )
    return Plot(svg_text(figure, "drift"), alt)


def _rounded(values: "np.ndarray") -> "np.ndarray":
    """Operands that bf16 holds, so that all of the error is the sum's."""
    from tpu_systems_audit.precision import bf16_round

    return bf16_round(values)


def _drift(x: "np.ndarray", w: "np.ndarray", got: "np.ndarray") -> float:
    """The largest error relative to S; exact sums are drawn at the smallest size that the axis shows."""
    import numpy as np

    wide = x.astype(np.float64), w.astype(np.float64)
    error = np.abs(got.astype(np.float64) - wide[0] @ wide[1])
    return max(float(np.max(error / (np.abs(wide[0]) @ np.abs(wide[1])))), 1e-9)
