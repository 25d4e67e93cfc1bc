"""The course's figures, as SVG that follows the page's ink in light and dark and has the same bytes on every build.

Matplotlib is imported when a figure is drawn, so that importing this module costs nothing.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from tpu_systems_audit.chips import generation, generations, matmul_intensity, ridge_point, roofline
from tpu_systems_audit.models import load
from tpu_systems_audit.sizing import Plan, Training, plan_train

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Mid-tones that keep a contrast of 3 : 1 against a white page and against a nearly black one.
HUES = ("#2f7fd1", "#c06a14", "#2a9064", "#9463c4", "#cc4b55", "#1a8a9c", "#8a7d2c", "#7b838b")
INK = "#000000"  # what matplotlib draws in by default; the page's own colour takes its place

WIDTH_IN = 5.4  # narrow enough that a phone shows all of it in letters one can read
STACK_PARTS = {
    "weights": ("weights", "weights_scales"),
    "moments": ("optimizer",),
    "working copy": ("working_copy",),
    "gradients": ("gradients",),
    "KV cache": ("kv_cache", "kv_scales"),
}
PART_HUES = dict(zip([*STACK_PARTS, "activations", "margin"], HUES, strict=False))


@dataclass(frozen=True)
class Plot:
    """A drawing and the words that stand for it where it cannot be seen."""

    svg: str
    alt: str


def roofline_plot(model: str = "llama-3-8b") -> Plot:
    """Draw every generation's roof, and real layers of a model at their intensities under the roofs.

    Args:
        model: a bundled model; its MLP as matrix products, its attention over a cache.
    """
    chips, layers = generations(), layer_intensities(model)
    figure, axes = canvas(4.6)
    ridges = {chip.name: ridge for chip in chips if (ridge := ridge_point(chip))}
    most = 4 * max(ridges.values())
    points = sorted([Fraction(1, 2), *ridges.values(), most])
    for hue, chip in zip(HUES, chips, strict=False):
        rates = [float(roofline(chip, x).attainable_tflops) for x in points]
        axes.plot([float(x) for x in points], rates, color=hue, linewidth=1.8)
        axes.annotate(chip.name, (float(most), rates[-1]), (4, 0), textcoords="offset points", va="center")
    for label, intensity in layers.items():
        axes.axvline(float(intensity), color=INK, linewidth=0.7, linestyle=":")
        rates = [float(roofline(chip, intensity).attainable_tflops) for chip in chips]
        axes.scatter([float(intensity)] * len(chips), rates, s=14, color=HUES[: len(chips)], zorder=3)
        # Beside its line where the roofs leave room: above them at low intensities, below them at high ones.
        foot, edge = (0.5, "bottom") if min(rates) > 10 else (3500, "top")
        place = (float(intensity), foot)
        axes.annotate(label, place, (-3, 0), textcoords="offset points", rotation=90, ha="right", va=edge)
    axes.set(xscale="log", yscale="log", xlim=(0.5, float(most) * 1.9), ylim=(0.4, 4000))
    axes.set(xlabel="intensity, FLOP/byte", ylabel="attainable, bf16 TFLOP/s")
    corners = ", ".join(f"{name} at {float(ridge):.0f}" for name, ridge in ridges.items())
    placed = "; ".join(f"{label}, at {float(x):.0f} FLOP/byte" for label, x in layers.items())
    alt = f"Rooflines of {len(chips)} generations, ridge points in FLOP/byte: {corners}. Under them, {model}: {placed}."
    return Plot(svg_text(figure, "roofline"), alt)


def layer_intensities(model: str, sequences: int = 64, prompt: int = 2048) -> dict[str, Fraction]:
    """Compute the intensities of a model's own layers in bf16, in FLOP/byte.

    Args:
        model: a bundled model.
        sequences: decoded side by side.
        prompt: tokens of a prefill.

    Attention over the cache reads each key and value once for all query heads that share it.

    >>> {label: round(float(x), 1) for label, x in layer_intensities("llama-3-8b").items()}["decode attention"]
    4.0
    """
    shapes = load(model)
    width, inner = shapes.hidden, shapes.intermediate
    return {
        "decode MLP, 1 sequence": matmul_intensity(1, width, inner),
        "decode attention": Fraction(shapes.heads, shapes.kv_heads),
        f"decode MLP, {sequences} sequences": matmul_intensity(sequences, width, inner),
        f"prefill MLP, {prompt:,} tokens": matmul_intensity(prompt, width, inner),
    }


def stack_plot(plans: Sequence[Plan]) -> Plot:
    """Draw what fills one chip of each plan's slice, as shares of its nominal HBM.

    Args:
        plans: of one job, a generation each; one without a slice is named and left empty.
    """
    figure, axes = canvas(0.42 * len(plans) + 1.6)
    seen: set[str] = set()
    words = []
    for row, plan in enumerate(plans):
        left, shares = 0.0, chip_shares(plan)
        for part, share in shares.items():
            label = None if part in seen else part
            axes.barh(row, 100 * share, 0.62, left, color=PART_HUES[part], label=label)
            seen.add(part)
            left += 100 * share
        axes.barh(row, 100, 0.62, fill=False, edgecolor=INK, linewidth=0.8)
        usable = float(100 * plan.generation.usable_hbm_bytes / plan.generation.hbm_bytes)
        axes.plot([usable, usable], [row - 0.4, row + 0.4], color=INK, linewidth=1.6)
        if plan.slice is None:
            axes.annotate("no slice holds it", (3, row), va="center")
        words.append(f"{plan.generation.name}: {_in_words(plan, shares)}")
    axes.axvline(float(100 * plans[0].budget), color=INK, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(plans)), [_bar_name(plan) for plan in plans])
    axes.set(xlim=(0, 103), ylim=(len(plans) - 0.4, -0.6), xlabel="% of one chip's nominal HBM")
    axes.grid(False)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, handlelength=0.9, columnspacing=1.1)
    dashed = f"The dashed line is the budget of {float(plans[0].budget):.0%}, the tick the usable HBM. "
    return Plot(svg_text(figure, "stack" + "".join(words)), dashed + ". ".join(words) + ".")


def chip_shares(plan: Plan) -> dict[str, float]:
    """Share one chip's nominal HBM among what fills it; empty when the plan has no slice.

    Args:
        plan: of training or serving.
    """
    if plan.slice is None:
        return {}
    sizes = {
        part: Fraction(sum(plan.parts_bytes.get(key, 0) for key in keys), plan.slice.chips)
        for part, keys in STACK_PARTS.items()
    }
    sizes["activations"] = Fraction(plan.activation_bytes_per_chip or 0)
    sizes["margin"] = Fraction(plan.margin_bytes_per_chip or 0)
    return {part: float(size / plan.generation.hbm_bytes) for part, size in sizes.items() if size}


def staircase_plot(mark: int, names: Sequence[str] = ("v5e", "v6e", "v5p")) -> Plot:
    """Draw chips needed and chips ordered against model size, mixed-bf16 under AdamW by the peak state.

    Args:
        mark: parameters of the model size to point out.
        names: the generations.
    """
    figure, axes = canvas(4.2)
    sizes = [round(10 ** (9 + 3 * step / 480)) for step in range(481)]
    words = []
    for hue, name in zip(HUES, names, strict=False):
        chip = generation(name)
        plans = [plan_train(Training(size), chip) for size in sizes]
        held = [(size, plan) for size, plan in zip(sizes, plans, strict=True) if plan.slice]
        xs = [size / 1e9 for size, _ in held]
        axes.step(xs, [p.slice.chips for _, p in held if p.slice], color=hue, linewidth=2, where="mid", label=name)
        axes.plot(xs, [plan.min_chips for _, plan in held], color=hue, linewidth=0.8)
        words.append(_step_in_words(plan_train(Training(mark), chip)))
        if xs[-1] < sizes[-1] / 1e9:
            axes.plot(xs[-1], chip.slices[-1].chips, marker="|", markersize=11, color=hue)
    axes.axvline(mark / 1e9, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="parameters, billions", ylabel="chips", xlim=(1, 1000))
    axes.legend(loc="upper left", frameon=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    alt = f"Chips against model size. At {mark / 1e9:g} billion parameters, {'; '.join(words)}."
    return Plot(svg_text(figure, "staircase"), alt)


def canvas(height_in: float) -> "tuple[Figure, Axes]":
    """Make a figure with one pair of axes, drawn in black.

    Args:
        height_in: of the figure, in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": 10, "axes.grid": True, "grid.color": INK, "grid.alpha": 0.18}):
        figure = Figure((WIDTH_IN, height_in), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        axes.minorticks_off()
        return figure, axes


def svg_text(figure: "Figure", salt: str) -> str:
    """Write a figure without what changes from build to build, or what would repeat an id on a page.

    Args:
        figure: from ``canvas``.
        salt: names the figure; two of one name would share their ids.
    """
    import matplotlib

    target = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    text = target.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    named = set(re.findall(r"#([\w.]+)", text))
    text = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in named else "", text)
    text = re.sub(r' font: ([\d.]+px)[^";]*', r" font-size: \1", text)  # the page's own font
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        r'<svg viewBox="\1" fill="currentColor" aria-hidden="true">',
        text,
        count=1,
    )
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def _bar_name(plan: Plan) -> str:
    ordered = plan.slice.accelerator_type if plan.slice else plan.generation.name
    return f"{ordered}, {plan.generation.hbm_gib} GiB"


def _in_words(plan: Plan, shares: dict[str, float]) -> str:
    if plan.slice is None:
        return "no slice holds it"
    parts = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
    return f"{plan.slice.accelerator_type}, {parts}, free {max(0.0, 1 - sum(shares.values())):.0%}"


def _step_in_words(plan: Plan) -> str:
    ordered = f"{plan.slice.chips} ordered" if plan.slice else "no slice holds it"
    return f"{plan.generation.name}: {plan.min_chips} needed, {ordered}"


def standalone(plot: Plot) -> str:
    """Make a drawing a file of its own, readable on a light and on a dark ground.

    Args:
        plot: of this package's own making.
    """
    dark = "@media(prefers-color-scheme:dark){svg{color:#e6e9ec;background:#14171a}}"
    style = f"<style>svg{{color:#1b1f24;background:#fff}}{dark}</style>"
    named = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(plot.alt)}" font-family="sans-serif"'
    )
    head, _, body = plot.svg.replace(' aria-hidden="true"', "").partition(">")
    return f"{head.replace('<svg', named)}>{style}{body}\n"
