"""What the benchmarks measured, as SVG."""

from collections.abc import Mapping, Sequence

from tpu_systems_audit.course.plots import HUES, Plot, canvas, svg_text

BYTES_PER_MB = 10**6


def growth_plot(rows: Sequence[Mapping[str, float | str]]) -> Plot:
    """Draw how long the audit of a trace takes against the size of the file, a line for each kind of trace.

    Args:
        rows: of ``growth`` in the results of ``benchmarks/traces.py``: kind, bytes, seconds, peak_mb.
    """
    figure, axes = canvas(3.6)
    words = []
    for hue, kind in zip(HUES, dict.fromkeys(str(row["kind"]) for row in rows), strict=False):
        points = sorted(
            (float(row["bytes"]) / BYTES_PER_MB, float(row["seconds"])) for row in rows if row["kind"] == kind
        )
        sizes, seconds = zip(*points, strict=True)
        axes.plot(sizes, seconds, color=hue, marker="o", markersize=4, label=f"full of {kind}")
        words.append(
            f"full of {kind}, {seconds[0]:.2f} s at {sizes[0]:.0f} MB and {seconds[-1]:.2f} s at {sizes[-1]:.0f} MB"
        )
    axes.set(xscale="log", yscale="log", xlabel="size of the trace, MB", ylabel="audit, seconds")
    axes.legend(fontsize=8, frameon=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    return Plot(svg_text(figure, "growth"), f"Time of an audit against the size of the trace: {'; '.join(words)}.")
