"""Bytes are counted whole, add up, and equal what Optax really keeps."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_systems_audit.models import Leaf, Model, load, model_names
from tpu_systems_audit.sizing import (
    KV_DTYPES,
    OPTIMIZERS,
    POLICIES,
    WEIGHT_DTYPES,
    find_policy,
    policy_from_bytes,
    serve_state,
    train_state,
)
from tpu_systems_audit.units import GIB, InputError

CASES = Path(__file__).parents[1] / "cases"
MEASURED = tomllib.loads((CASES / "optimizers.toml").read_text())
# Our optimizer names, Optax's in the measured cases, and whether Optax keeps the parameters' dtype.
IN_OPTAX = {"adamw": "adamw", "adam": "adam", "sgd": "sgd", "momentum": "momentum", "lion": "lion",
            "adafactor": "adafactor_default"}  # fmt: skip
DTYPE_POLICY = {"float32": "fp32", "bfloat16": "pure-bf16"}

counts = st.integers(1, 10**13)


def model_of(shapes: dict[str, list[int]]) -> Model:
    """A model that is nothing but arrays of *shapes*."""
    leaves = tuple(Leaf(name, "mlp", tuple(shape), 1, "matrix") for name, shape in shapes.items())
    return Model(
        name="arrays", model_type="llama", layers=1, hidden=1, intermediate=1, heads=1, kv_heads=1, head_dim=1,
        vocab=1, leaves=leaves, caches=(), defaults=(), notes=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "resident", "peak"),
    [("fp32", 12, 16), ("mixed-bf16", 12, 16), ("mixed-bf16-fp32-grads", 12, 18), ("pure-bf16", 6, 8)],
)
@given(count=counts)
def test_a_policy_takes_its_bytes_per_parameter(policy: str, resident: int, peak: int, count: int) -> None:
    state = train_state(count, find_policy(policy))
    assert (state.resident_bytes, state.peak_bytes) == (resident * count, peak * count)


@given(counts, st.sampled_from(sorted(POLICIES)))
def test_a_policy_given_in_bytes_is_the_same_as_its_name(count: int, name: str) -> None:
    policy = POLICIES[name]
    figures = (policy.weights, policy.working_copy, policy.gradients, policy.moments)
    given_in_bytes = train_state(count, policy_from_bytes(",".join(map(str, figures))))
    assert given_in_bytes.peak_bytes == train_state(count, policy).peak_bytes


def test_bf16_weights_with_fp32_moments_and_no_master_copy_is_a_policy() -> None:
    assert train_state(13 * 10**9, policy_from_bytes("2,0,0,8")).resident_bytes == 130 * 10**9


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "a,b,c,d", "-1,0,0,0", "0,0,0,8", "4,0,4,65", "nan,0,0,0"])
def test_a_policy_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="WEIGHTS,COPY,GRADIENTS,MOMENTS"):
        policy_from_bytes(text)


@pytest.mark.parametrize("dtype", DTYPE_POLICY)
@pytest.mark.parametrize("shape", MEASURED["shapes"])
@pytest.mark.parametrize("optimizer", IN_OPTAX)
def test_optimizer_bytes_are_those_measured_in_optax(optimizer: str, shape: str, dtype: str) -> None:
    measured = MEASURED["optimizer"][IN_OPTAX[optimizer]]["measured"][dtype][shape]
    state = train_state(model_of(MEASURED["shapes"][shape]), find_policy(DTYPE_POLICY[dtype]), optimizer)
    assert state.optimizer_bytes + state.constant_bytes == measured


@pytest.mark.parametrize("dtype", DTYPE_POLICY)
@pytest.mark.parametrize("optimizer", [*IN_OPTAX, "muon"])
def test_optimizer_bytes_are_those_of_a_live_optax_state(optimizer: str, dtype: str) -> None:
    jax = pytest.importorskip("jax", reason="the jax extra is not installed")
    optax = pytest.importorskip("optax", reason="the test extra is not installed")
    make = {"momentum": lambda: optax.sgd(0.1, momentum=0.9), "muon": lambda: optax.contrib.muon(0.1)}
    transform = make.get(optimizer, lambda: getattr(optax, optimizer)(0.1))()
    shapes = {"embedding": [512, 256], "mlp": [256, 1024], "small": [64, 64], "norm": [256]}
    params = {name: jax.ShapeDtypeStruct(tuple(shape), dtype) for name, shape in shapes.items()}
    kept = jax.tree.leaves(jax.eval_shape(transform.init, params))
    state = train_state(model_of(shapes), find_policy(DTYPE_POLICY[dtype]), optimizer)
    assert state.optimizer_bytes + state.constant_bytes == sum(leaf.size * leaf.dtype.itemsize for leaf in kept)


def test_8_bit_adam_takes_two_codes_and_two_scales_a_block() -> None:
    assert train_state(2**20, find_policy("fp32"), "adam8bit").optimizer_bytes == 2**20 * 2 + 2**20 // 256 * 8
    assert train_state(4095, find_policy("fp32"), "adam8bit").optimizer_bytes == 4095 * 8, "small arrays stay fp32"


@pytest.mark.parametrize("optimizer", ["adafactor", "muon"])
def test_an_optimizer_that_needs_shapes_refuses_a_bare_count(optimizer: str) -> None:
    with pytest.raises(InputError, match=f"{optimizer} needs the model's shapes"):
        train_state(7 * 10**9, find_policy("fp32"), optimizer)


@pytest.mark.parametrize("name", model_names())
def test_the_optimizer_changes_only_its_own_bytes(name: str) -> None:
    policy = find_policy("mixed-bf16")
    states = [train_state(load(name), policy, optimizer) for optimizer in OPTIMIZERS]
    assert len({(s.weights_bytes, s.working_copy_bytes, s.gradients_bytes) for s in states}) == 1
    by_name = {s.optimizer: s.optimizer_bytes for s in states}
    assert by_name["sgd"] == 0 < by_name["adafactor"] < by_name["adam8bit"] < by_name["lion"] == by_name["momentum"]
    assert by_name["lion"] <= by_name["muon"] < by_name["adamw"] == by_name["adam"]


@pytest.mark.parametrize("name", model_names())
def test_bare_dtypes_hold_every_parameter_and_integers_cost_scales(name: str) -> None:
    model = load(name)
    states = {dtype: serve_state(model, 1, 1, weights_dtype=dtype) for dtype in WEIGHT_DTYPES}
    assert states["fp32"].weights_bytes == 4 * model.parameters
    assert states["bf16"].weights_bytes == 2 * model.parameters
    assert states["fp8"].weights_bytes == model.parameters
    assert model.parameters < states["int8"].weights_bytes < states["bf16"].weights_bytes, "norms and embeddings stay"
    assert states["int4"].weights_bytes < states["int8"].weights_bytes
    assert states["int8"].weights_scale_bytes > 0 < states["int4"].weights_scale_bytes
    assert all(states[dtype].weights_scale_bytes == 0 for dtype in ("fp32", "bf16", "fp8"))


def test_integer_weights_are_counted_matrix_by_matrix() -> None:
    """Llama 3 8B by hand: int8 has a scale per output column, int4 one per 32 contracted values."""
    columns = 32 * (4096 + 1024 + 1024 + 4096 + 2 * 14336 + 4096) + 128256
    matrices = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128256
    rest = 128256 * 4096 + 65 * 4096
    int8, int4 = (serve_state(load("llama-3-8b"), 1, 1, weights_dtype=d) for d in ("int8", "int4"))
    assert (int8.weights_bytes, int8.weights_scale_bytes) == (matrices + 2 * rest, 4 * columns)
    assert (int4.weights_bytes, int4.weights_scale_bytes) == (matrices // 2 + 2 * rest, matrices // 32 * 2)


@given(st.sampled_from(model_names()), st.integers(1, 10**6), st.integers(1, 10**4), st.sampled_from(KV_DTYPES))
def test_a_cache_grows_with_context_and_is_proportional_to_batch(name: str, context: int, batch: int, kv: str) -> None:
    model = load(name)
    one, all_, longer = (
        serve_state(model, tokens, sequences, kv_dtype=kv)
        for tokens, sequences in ((context, 1), (context, batch), (context + 1, 1))
    )
    assert all_.kv_cache_bytes == batch * one.kv_cache_bytes
    assert all_.kv_scale_bytes == batch * one.kv_scale_bytes
    assert one.kv_cache_bytes <= longer.kv_cache_bytes <= one.kv_cache_bytes + one.kv_bytes_per_token
    assert (one.kv_scale_bytes > 0) == (kv == "int8")


def test_kv_bytes_per_token_is_the_first_tokens() -> None:
    for name in model_names():
        state = serve_state(load(name), 1, 1)
        assert state.kv_bytes_per_token == state.kv_cache_bytes, name


def test_an_int8_cache_has_a_scale_per_token_and_kv_head_for_k_and_for_v() -> None:
    state = serve_state(load("llama-3-8b"), 8192, 2, kv_dtype="int8")
    assert state.kv_scale_bytes == 2 * 8192 * 32 * 8 * 2 * 4
    assert state.kv_cache_bytes == GIB


def test_an_mla_layer_has_one_latent_and_one_scale() -> None:
    state = serve_state(load("deepseek-v3"), 1000, 1, kv_dtype="int8")
    assert state.kv_cache_bytes == 1000 * 61 * 576
    assert state.kv_scale_bytes == 1000 * 61 * 4


@pytest.mark.parametrize(("weights", "kv"), [("int2", "bf16"), ("bf16", "int4"), ("BF16", "bf16")])
def test_a_dtype_serving_does_not_have_is_refused(weights: str, kv: str) -> None:
    with pytest.raises(InputError, match="dtype"):
        serve_state(load("gpt2"), 1, 1, weights, kv)
