"""From what a source states to the package's own objects; nothing here computes an answer."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpu_systems_audit.chips import Figure, Generation, generation
from tpu_systems_audit.models import Model, from_config
from tpu_systems_audit.sizing import policy_from_bytes, train_state
from tpu_systems_audit.units import GB

Inputs = dict[str, Any]
Number = int | float | Fraction
Route = Callable[[Inputs], Number]

TERA = 10**12

FLAT = {1: "fp8", 2: "bf16", 4: "fp32"}  # bytes of a value to a dtype that is stored without scales


def exact(value: Number) -> Fraction:
    """The decimal number as the source writes it.

    >>> exact(0.7)
    Fraction(7, 10)
    """
    return Fraction(str(value))


def chip(peak_per_s: float, bytes_per_s: float | None = None, dtype: str = "bf16") -> Generation:
    """A generation with a source's own figures, which may be another chip's or another memory's.

    Args:
        peak_per_s: FLOP/s, or integer operations a second, at *dtype*.
        bytes_per_s: of the memory that feeds it; None where the question has none.
        dtype: of the peak.

    >>> chip(9.89e14).peak_tflops("bf16")
    Fraction(989, 1)
    """
    base = generation("v5e")
    figures = dict(base.figures)
    figures[f"peak_tflops.{dtype}"] = _figure(exact(peak_per_s) / TERA)
    if bytes_per_s is not None:
        figures["hbm_gb_per_s"] = _figure(exact(bytes_per_s) / GB)
    return replace(base, name="as published", figures=figures)


def decoder(shape: Inputs, model_type: str = "llama", **more: Any) -> Model:
    """A decoder from the letters that papers use: d, f, layers, heads, kv_heads, head_dim, vocab.

    Args:
        shape: widths and counts; what is left out takes no part in the question and is 1.
        model_type: of the configuration.
        more: further fields of the configuration.

    >>> decoder({"layers": 64, "d": 4096, "f": 16384, "heads": 32}).parts["mlp"] == 64 * 3 * 4096 * 16384
    True
    """
    heads = shape.get("heads", shape.get("kv_heads", 1))
    config = {
        "model_type": model_type,
        "num_hidden_layers": shape.get("layers", 1),
        "hidden_size": shape.get("d", 1),
        "intermediate_size": shape.get("f", 1),
        "num_attention_heads": heads,
        "num_key_value_heads": shape.get("kv_heads", heads),
        "head_dim": shape.get("head_dim", max(1, shape.get("d", 1) // heads)),
        "vocab_size": shape.get("vocab", 1),
    }
    return from_config(config | more, "as published")


def kept(parameters: float, bytes_per_parameter: float) -> int:
    """Bytes of a bare count of parameters.

    >>> kept(70e9, 0.5) // GB
    35
    """
    return train_state(int(parameters), policy_from_bytes(f"{bytes_per_parameter},0,0,0")).weights_bytes


def _figure(value: Fraction) -> Figure:
    return Figure(value, "published", "", ())
