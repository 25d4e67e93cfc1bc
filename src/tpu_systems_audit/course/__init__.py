"""What the pages show: tables, drawings, and numbers as words."""

from tpu_systems_audit.course.plots import (
    Plot,
    chip_shares,
    layer_intensities,
    roofline_plot,
    stack_plot,
    staircase_plot,
    standalone,
)
from tpu_systems_audit.course.plots_benchmark import growth_plot
from tpu_systems_audit.course.plots_precision import drift_plot
from tpu_systems_audit.course.plots_trace import timeline_plot
from tpu_systems_audit.course.shell import shell
from tpu_systems_audit.course.site import RESULTS, ROOT, Html, figure, premise, say, table

__all__ = [
    "RESULTS",
    "ROOT",
    "Html",
    "Plot",
    "chip_shares",
    "drift_plot",
    "figure",
    "growth_plot",
    "layer_intensities",
    "premise",
    "roofline_plot",
    "say",
    "shell",
    "stack_plot",
    "staircase_plot",
    "standalone",
    "table",
    "timeline_plot",
]
