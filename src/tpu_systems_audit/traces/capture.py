"""Capture a trace of warmed steps: nothing compiles in it, and nothing is still running when it ends.

JAX is imported when something is captured: whoever only reads traces needs none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpu_systems_audit.traces.files import SUFFIXES
from tpu_systems_audit.units import InputError

HOST_TRACER_LEVEL = 2
STEPS = 5
WARM_UPS = 2  # the second shows that the first left nothing to compile


@contextmanager
def warmed_trace(step: Callable[[Any], Any], argument: object, directory: Path) -> Iterator[Callable[[int], Any]]:
    """Warm a step, wait for it, and trace what the block runs; the block gets a function that runs one numbered step.

    Every step is annotated with its number and waited for inside its annotation. The tracer's level stands in the file.

    Args:
        step: takes the argument; returns arrays.
        argument: the same for the warm-up and for every step, so that nothing compiles in the trace.
        directory: where the profiler makes its folders; earlier traces in it stay.
    """
    import jax

    for _ in range(WARM_UPS):
        jax.block_until_ready(step(argument))
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = HOST_TRACER_LEVEL
    options.python_tracer_level = 0

    def run(number: int) -> Any:
        with jax.profiler.StepTraceAnnotation("step", step_num=number):
            return jax.block_until_ready(step(argument))

    with jax.profiler.trace(f"{directory}", profiler_options=options):
        yield run


def capture(step: Callable[[Any], Any], argument: object, directory: Path, steps: int = STEPS) -> Path:
    """Trace warmed steps and return the file.

    Args:
        step: takes the argument; returns arrays.
        argument: the same for the warm-up and for every step.
        directory: where the profiler makes its folders.
        steps: how many.

    Raises:
        InputError: when the profiler wrote no file.
    """
    before = _traces(directory)
    with warmed_trace(step, argument, directory) as run:
        for number in range(steps):
            run(number)
    made = sorted(_traces(directory) - before)
    if not made:
        raise InputError(f"{directory}: the profiler wrote no trace; a folder that can be written is right")
    return made[-1]


def matmul_step(side: int = 1024) -> tuple[Callable[[Any], Any], Any]:
    """Make a step to try the capture with: a bf16 matmul, and its argument.

    Args:
        side: rows and columns of the argument.
    """
    import jax

    argument = jax.numpy.ones((side, side), jax.numpy.bfloat16)
    return jax.jit(lambda x: x @ x), jax.block_until_ready(argument)


def _traces(directory: Path) -> set[Path]:
    return {file for suffix in SUFFIXES for file in directory.rglob(f"*{suffix}")}
