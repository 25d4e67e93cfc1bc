"""Stage 2, in the learner's process: makes arrays, calls one function, gives back names, shapes and bytes.

The functions at the end take the place of a learner's own helper where that one is wrong, so that a mistake is told
once, at the check of the function that holds it. No check compares with them.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

HELPERS = {"int8_matmul": ("quantize_int8",), "error_summary": ("bf16_matmul", "int8_matmul")}


def prepare(name):
    """Give what calls the function of that name."""
    if name == "capture_warmed_trace":
        return capturing(Path.cwd())

    def call(function, *arguments):
        for helper in HELPERS.get(name, ()):
            replace_if_wrong(vars(sys.modules["model"]), helper)
        given = [array(*each) if isinstance(each, tuple) else each for each in arguments]
        if not np.isfinite(given[0]).all():
            return refusal(function, given)
        result = function(*given)
        return summary(result) if name == "error_summary" else described(result)

    return call


def array(dtype, shape, raw, times=(1, 1)):
    """Make an array of float32 from the bytes of one of any dtype, repeated along each axis."""
    return np.tile(np.frombuffer(raw, dtype).reshape(shape).astype(np.float32), times)


def refusal(function, given):
    """Say whether the function raises ValueError."""
    try:
        function(*given)
    except ValueError:
        return True
    return False


def described(result):
    """Write each array of a result on a line: dtype, shape, and its bytes in hexadecimal."""
    parts = result if isinstance(result, tuple | list) else [result]
    return "\n".join(map(line, parts)).encode()


def line(part):
    """Write one array; of what is none, only the type."""
    if not hasattr(part, "dtype") or not hasattr(part, "shape"):
        return f"{type(part).__name__} - -"
    part = np.asarray(part)
    return f"{part.dtype} {','.join(map(str, part.shape))}- {part.tobytes().hex()}-"


def summary(result):
    """Lay two levels of names and numbers side by side; what has another form stays as it is."""
    if not isinstance(result, dict) or not all(isinstance(inner, dict) for inner in result.values()):
        return result
    flat = []
    for outer, inner in sorted(result.items()):
        for key, value in sorted(inner.items()):
            flat += [outer, key, float(value) if np.ndim(value) == 0 and value is not None else value]
    return tuple(flat)


def capturing(work):
    """Give what lets the learner trace a new step, and tells where the file is and how the step was called."""

    def call(function, name, side, times, factor, steps, earlier):
        folder = work / name
        folder.mkdir()
        older = older_trace(work / earlier, folder) if earlier else None
        before = older and older.read_bytes()
        argument, step, given = watched(name, side, times, factor)
        came = function(step, argument, str(folder), **({"steps": steps} if steps else {}))
        told = {
            "path": os.path.abspath(came) if isinstance(came, str | os.PathLike) else "",  # noqa: PTH100 - links stay
            "kind": type(came).__name__,
            "folder": str(folder),
            "older": str(older or ""),
            "kept": not older or (older.is_file() and older.read_bytes() == before),
            "calls": len(given),
            "others": sum(each is not argument for each in given),
        }
        return json.dumps(told).encode()

    return call


def older_trace(source, folder):
    """Put the trace of another call where the profiler would have written it long ago: it names folders by seconds."""
    file = next(source.rglob("*.xplane.pb"))
    older = folder / "plugins/profile/2025_01_02_03_04_05" / file.name
    older.parent.mkdir(parents=True)
    shutil.copyfile(file, older)
    os.utime(older, (1735787045, 1735787045))
    return older


def watched(name, side, times, factor):
    """Make an argument, a compiled step of that name, and a list of what the step is called with."""
    import jax

    def products(x):
        y = x
        for _ in range(times):
            y = y @ x * factor
        return y

    products.__name__ = name
    compiled, given = jax.jit(products), []

    def step(x):
        given.append(x)
        return compiled(x)

    if jax.default_backend() != "cpu":
        side *= 16  # an accelerator's steps must be as long
    values = np.random.default_rng(side).random((side, side), np.float32)
    return jax.block_until_ready(jax.device_put(values)), step, given


def replace_if_wrong(names, helper):
    """Put a right function where the learner's helper is wrong or missing."""
    own, right = names.get(helper), RIGHT[helper]
    if getattr(own, "stands_in", False):
        return

    def stand_in(*arguments, **named):
        try:
            wanted = right(*arguments[:2], **({"axis": named["axis"]} if "axis" in named else {}))
        except Exception:
            return own(*arguments, **named)
        try:
            got = own(*arguments, **named)
            return got if same(got, wanted) else wanted
        except Exception:
            return wanted

    stand_in.stands_in = True
    names[helper] = stand_in


def same(got, wanted):
    """Whether all arrays agree but for what another order of additions makes."""
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    return all(
        one.dtype == other.dtype and one.shape == other.shape and np.allclose(one, other, rtol=2**-20, atol=0)
        for one, other in pairs
    )


def quantize_int8(x, axis=None):
    x = np.asarray(x, np.float32)
    scale = (np.abs(x).max(axis=axis, keepdims=True) / np.float32(127)).astype(np.float32)
    scale = np.where(scale == 0, np.float32(1), scale)
    return np.rint(x / scale).astype(np.int8), scale


def int8_matmul(x, w):
    (x, x_scale), (w, w_scale) = quantize_int8(x, 1), quantize_int8(w, 0)
    return (x.astype(np.int64) @ w.astype(np.int64)).astype(np.float32) * (x_scale * w_scale)


def bf16_matmul(x, w):
    x, w = (np.asarray(each).astype(ml_dtypes.bfloat16).astype(np.float64) for each in (x, w))
    return (x @ w).astype(np.float32)


RIGHT = {"quantize_int8": quantize_int8, "int8_matmul": int8_matmul, "bf16_matmul": bf16_matmul}
