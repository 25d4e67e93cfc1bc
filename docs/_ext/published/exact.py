"""The cases of ``answers.json``, each kind as calls of the package."""

from collections.abc import Callable
from typing import Any

from published.inputs import FLAT, Inputs, Number, decoder, exact, kept
from published.models import book_18b, token_bytes, without_norms
from published.rates import ridge
from published.states import book_bytes
from tpu_systems_audit.chips import generation, matmul_intensity, parse_slice
from tpu_systems_audit.models import load
from tpu_systems_audit.sizing import Training, decode_floor_ms, find_policy, plan_train, serve_state, train_state
from tpu_systems_audit.units import gib

Parts = dict[str, Number | str]

# Which of several answers the source prints; what is not named here is its unit, or the first.
PRINTED = {
    "state-7b-mixed": "resident",
    "state-7b-fp32": "peak",
    "state-1.5b-mixed": "resident",
    "state-7.5b-zero": "peak",
}


def plan_parts(x: Inputs) -> Parts:
    """Chips and slice of a training run."""
    budget = exact(x["budget"])
    job = Training(int(x["parameters"]), find_policy(x["policy"]), basis=x["basis"], budget=budget)
    plan = plan_train(job, generation(x["generation"]))
    assert plan.slice is not None
    return {
        "min_chips": plan.min_chips,
        "slice_chips": plan.slice.chips,
        "accelerator_type": plan.slice.accelerator_type,
    }


def state_parts(x: Inputs) -> Parts:
    """Resident and peak state of a bare count, in GiB."""
    state = train_state(int(x["parameters"]), find_policy(x["policy"]))
    return {"resident": gib(state.resident_bytes), "peak": gib(state.peak_bytes)}


def slice_parts(x: Inputs) -> Parts:
    """Chips and hosts of an accelerator type."""
    found = parse_slice(x["accelerator_type"])[1]
    return {"chips": found.chips, "hosts": found.hosts}


def cache_of_shape(x: Inputs) -> float:
    """A KV cache from layers and heads, in GiB."""
    state = serve_state(decoder(x), x["tokens"], x["sequences"], kv_dtype=FLAT[x["bytes_per_value"]])
    return gib(state.kv_cache_bytes)


def cache_of_model(x: Inputs) -> int:
    """The KV cache of a bundled model, in bytes."""
    kv_dtype = FLAT[x["bytes_per_value"]]
    return serve_state(load(x["model"]), x["context"], x["batch"], kv_dtype=kv_dtype).kv_cache_bytes


def noted(x: Inputs) -> Number:
    """The two that stand alone: a policy given as bytes, and the book's 18B model, which is stated in words."""
    if not x:
        return without_norms(book_18b())
    assert book_bytes(1) == x["bytes_per_parameter"]
    return gib(book_bytes(x["parameters"]))


BY_KIND: dict[str, Callable[[Inputs], Number | Parts]] = {
    "ridge": lambda x: ridge(generation(x["generation"]), x["dtype"]),
    "matmul": lambda x: matmul_intensity(x["m"], x["k"], x["n"], FLAT[x["a_bytes"]]),
    "train_state": state_parts,
    "note": noted,
    "kv_per_token": lambda x: token_bytes(x["model"], x["kv_dtype"]),
    "kv_cache": cache_of_model,
    "kv_cache_shape": cache_of_shape,
    "plan": plan_parts,
    "slice": slice_parts,
    "decode_floor": lambda x: decode_floor_ms(
        int(x["weights_bytes"] + x["kv_bytes"]), x["chips"], generation(x["generation"])
    ),
    "weights": lambda x: kept(x["parameters"], x["bits"] / 8),
}


def solve(case: dict[str, Any]) -> Number | Parts:
    """Everything that the package answers to a case, by name where that is more than a number.

    >>> solve({"kind": "slice", "inputs": {"accelerator_type": "v5p-16"}})
    {'chips': 8, 'hosts': 2}
    """
    return BY_KIND[case["kind"]](case["inputs"])


def printed(case: dict[str, Any]) -> Number:
    """The one number of the answer that the source prints."""
    found = solve(case)
    if not isinstance(found, dict):
        return found
    name = PRINTED.get(case["id"], case["unit"])
    value = found[name] if name in found else next(iter(found.values()))
    assert not isinstance(value, str)
    return value
