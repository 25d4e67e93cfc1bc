"""Counts are exact and follow from the configuration's fields; whatever is wrong with one is said in one line."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_systems_audit.models import Model, from_config, load, model_names, read_config, supported
from tpu_systems_audit.models.config import LARGEST_FILE_BYTES, LARGEST_SIZE
from tpu_systems_audit.models.transformer import MODELS
from tpu_systems_audit.units import InputError

CASES = json.loads((Path(__file__).parents[1] / "cases" / "models.json").read_text())
CONFIGS = {name: json.loads((MODELS / f"{name}.json").read_text()) for name in model_names()}

# DeepSeek-V2-Lite as published: queries without a latent, two shared experts, the first layer dense.
V2_LITE = {
    "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
    "n_shared_experts": 2, "n_routed_experts": 64, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "tie_word_embeddings": False,
}  # fmt: skip

# The language model of Gemma 3 4B, as it stands inside a multimodal configuration.
GEMMA3_TEXT = {
    "model_type": "gemma3_text", "vocab_size": 262208, "hidden_size": 2560, "intermediate_size": 10240,
    "num_hidden_layers": 34, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "sliding_window": 1024,
}  # fmt: skip


def changed(name: str, **fields: object) -> dict:
    """A bundled configuration with some fields set."""
    return CONFIGS[name] | fields


def without(config: dict, *fields: str) -> dict:
    return {key: value for key, value in config.items() if key not in fields}


def windows(model: Model) -> dict[int | None, int]:
    """How many layers have each window, None for attention to everything."""
    return {run.window: run.layers for run in model.caches}


def refusal(config: object) -> str:
    """The one line that refuses *config*."""
    with pytest.raises(InputError) as caught:
        from_config(config, "tried")
    message = str(caught.value)
    assert message.startswith("tried: ")
    assert len(message.splitlines()) == 1
    return message


# Published counts


def test_every_bundled_model_has_a_published_count() -> None:
    assert set(CASES) == set(model_names())


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_bundled_model_has_its_published_count(name: str) -> None:
    model = load(name)
    assert model.parameters == CASES[name]["parameters"]
    assert model.kv_values_per_token == CASES[name]["kv_values_per_token"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_published_configuration_gives_the_published_count(name: str) -> None:
    model = from_config(CASES[name]["config"], name)
    assert model.parameters == CASES[name]["parameters"]
    assert model.kv_values_per_token == CASES[name]["kv_values_per_token"]


# Counts by hand


def grouped_query(c: dict, head_dim: int) -> int:
    """Query and output projections of all heads, key and value projections of the KV heads."""
    query, kv = c["num_attention_heads"] * head_dim, c["num_key_value_heads"] * head_dim
    return 2 * c["hidden_size"] * query + 2 * c["hidden_size"] * kv


def gated(hidden: int, inner: int) -> int:
    return 3 * hidden * inner


def ends(c: dict, tied: bool) -> int:
    """Embedding, final norm, and a head where it is not the embedding."""
    return (1 if tied else 2) * c["vocab_size"] * c["hidden_size"] + c["hidden_size"]


def llama(c: dict) -> int:
    hidden = c["hidden_size"]
    layer = grouped_query(c, hidden // c["num_attention_heads"]) + gated(hidden, c["intermediate_size"]) + 2 * hidden
    return ends(c, tied=False) + c["num_hidden_layers"] * layer


def mixtral(c: dict) -> int:
    hidden, experts = c["hidden_size"], c["num_local_experts"]
    moe = hidden * experts + experts * gated(hidden, c["intermediate_size"])
    layer = grouped_query(c, hidden // c["num_attention_heads"]) + moe + 2 * hidden
    return ends(c, tied=False) + c["num_hidden_layers"] * layer


def qwen2(c: dict) -> int:
    """Biases over the outputs of q, k and v; the head size is hidden over heads."""
    head_dim = c["hidden_size"] // c["num_attention_heads"]
    biases = (c["num_attention_heads"] + 2 * c["num_key_value_heads"]) * head_dim
    return llama(c) + c["num_hidden_layers"] * biases


def qwen3_moe(c: dict) -> int:
    hidden, experts = c["hidden_size"], c["num_experts"]
    moe = hidden * experts + experts * gated(hidden, c["moe_intermediate_size"])
    layer = grouped_query(c, c["head_dim"]) + moe + 2 * hidden + 2 * c["head_dim"]
    return ends(c, tied=False) + c["num_hidden_layers"] * layer


def gemma2(c: dict) -> int:
    hidden = c["hidden_size"]
    layer = grouped_query(c, c["head_dim"]) + gated(hidden, c["intermediate_size"]) + 4 * hidden
    return ends(c, tied=True) + c["num_hidden_layers"] * layer


def gemma3(c: dict) -> int:
    return gemma2(c) + c["num_hidden_layers"] * 2 * c["head_dim"]


def gpt2(c: dict) -> int:
    """Tied, learned positions, biases everywhere, an inner width of four times the outer."""
    hidden = c["n_embd"]
    attention = 4 * (hidden * hidden + hidden)
    mlp = (hidden * 4 * hidden + 4 * hidden) + (4 * hidden * hidden + hidden)
    norms = 2 * 2 * hidden
    return (c["vocab_size"] + c["n_positions"]) * hidden + c["n_layer"] * (attention + mlp + norms) + 2 * hidden


def latent_attention(c: dict) -> int:
    hidden, heads, latent, rope = (
        c[key] for key in ("hidden_size", "num_attention_heads", "kv_lora_rank", "qk_rope_head_dim")
    )
    nope, value, rank = c["qk_nope_head_dim"], c["v_head_dim"], c["q_lora_rank"]
    width = heads * (nope + rope)
    queries = hidden * width if rank is None else hidden * rank + rank + rank * width
    keys = hidden * (latent + rope) + latent + latent * heads * (nope + value)
    return queries + keys + heads * value * hidden


def deepseek(c: dict) -> int:
    hidden, experts, inner = c["hidden_size"], c["n_routed_experts"], c["moe_intermediate_size"]
    dense = gated(hidden, c["intermediate_size"])
    router = hidden * experts + (experts if c["model_type"] == "deepseek_v3" else 0)
    sparse = router + (experts + c["n_shared_experts"]) * gated(hidden, inner)
    first, layers = c["first_k_dense_replace"], c["num_hidden_layers"]
    both = layers * (latent_attention(c) + 2 * hidden)
    return ends(c, tied=False) + both + first * dense + (layers - first) * sparse


def gpt_oss(c: dict) -> int:
    """A sink for each head; biases over q, k, v, o, over the router and over each expert's three matrices."""
    hidden, inner, experts = c["hidden_size"], c["intermediate_size"], c["num_local_experts"]
    query, kv = (c[heads] * c["head_dim"] for heads in ("num_attention_heads", "num_key_value_heads"))
    attention = grouped_query(c, c["head_dim"]) + query + 2 * kv + hidden + c["num_attention_heads"]
    expert = gated(hidden, inner) + 2 * inner + hidden
    layer = attention + hidden * experts + experts + experts * expert + 2 * hidden
    return ends(c, tied=False) + c["num_hidden_layers"] * layer


BY_HAND = [
    ("llama-3-8b", CONFIGS["llama-3-8b"], llama),
    ("mixtral-8x7b-v0.1", CONFIGS["mixtral-8x7b-v0.1"], mixtral),
    ("qwen2.5-7b", CONFIGS["qwen2.5-7b"], qwen2),
    ("qwen3-30b-a3b", CONFIGS["qwen3-30b-a3b"], qwen3_moe),
    ("gemma-2-9b", CONFIGS["gemma-2-9b"], gemma2),
    ("gemma-3-4b", {"model_type": "gemma3", "text_config": GEMMA3_TEXT}, lambda c: gemma3(c["text_config"])),
    ("phi-3-mini-4k", CONFIGS["phi-3-mini-4k"], llama),  # what is fused has the same count
    ("gpt2", CONFIGS["gpt2"], gpt2),
    ("deepseek-v2-lite", V2_LITE, deepseek),
    ("deepseek-v3", CONFIGS["deepseek-v3"], deepseek),
    ("gpt-oss-120b", CONFIGS["gpt-oss-120b"], gpt_oss),
]


@pytest.mark.parametrize(("config", "by_hand"), [each[1:] for each in BY_HAND], ids=[each[0] for each in BY_HAND])
def test_the_count_follows_from_the_fields(config: dict, by_hand) -> None:
    assert from_config(config, "tried").parameters == by_hand(config)


def test_deepseek_v2_lite_has_its_published_count() -> None:
    assert from_config(V2_LITE, "tried").parameters == 15_706_484_224


def test_a_token_passes_only_its_experts() -> None:
    config = CONFIGS["mixtral-8x7b-v0.1"]
    idle = config["num_local_experts"] - config["num_experts_per_tok"]
    expert = gated(config["hidden_size"], config["intermediate_size"])
    model = load("mixtral-8x7b-v0.1")
    assert model.parameters - model.active_parameters == config["num_hidden_layers"] * idle * expert
    assert load("llama-3-8b").active_parameters == load("llama-3-8b").parameters


def test_qwen3_moe_has_dense_layers_where_it_says_so() -> None:
    config = changed("qwen3-30b-a3b", mlp_only_layers=[0, 1, 7])
    sparse = config["hidden_size"] * config["num_experts"] + config["num_experts"] * gated(
        config["hidden_size"], config["moe_intermediate_size"]
    )
    dense = gated(config["hidden_size"], config["intermediate_size"])
    assert from_config(config, "tried").parameters == qwen3_moe(config) + 3 * (dense - sparse)
    every_second = changed("qwen3-30b-a3b", decoder_sparse_step=2, num_hidden_layers=5)  # of 0 to 4, the layers 1 and 3
    assert from_config(every_second, "tried").parameters == qwen3_moe(every_second) + 3 * (dense - sparse)


def test_deepseek_has_dense_layers_between_where_it_says_so() -> None:
    config = V2_LITE | {"moe_layer_freq": 2, "num_hidden_layers": 6}  # of the layers 1 to 5, the odd ones are dense
    hidden, experts = config["hidden_size"], config["n_routed_experts"] + config["n_shared_experts"]
    sparse = hidden * config["n_routed_experts"] + experts * gated(hidden, config["moe_intermediate_size"])
    dense = gated(hidden, config["intermediate_size"])
    assert from_config(config, "tried").parameters == deepseek(config) + 3 * (dense - sparse)


@pytest.mark.parametrize(
    ("config", "field", "more"),
    [
        (CONFIGS["llama-3-8b"], "attention_bias", lambda c: 2 * c["hidden_size"] + 2 * 8 * 128),
        (CONFIGS["llama-3-8b"], "mlp_bias", lambda c: 2 * c["intermediate_size"] + c["hidden_size"]),
        (V2_LITE, "attention_bias", lambda c: c["kv_lora_rank"] + c["qk_rope_head_dim"] + c["hidden_size"]),
    ],
    ids=["llama attention", "llama mlp", "deepseek attention"],
)
def test_a_bias_that_is_asked_for_is_counted_in_every_layer(config: dict, field: str, more) -> None:
    plain, biased = (from_config(config | {field: value}, "tried").parameters for value in (False, True))
    assert biased - plain == config["num_hidden_layers"] * more(config)


# Caches


def test_the_cache_holds_keys_and_values_of_the_kv_heads() -> None:
    for name in ("llama-3-8b", "qwen3-30b-a3b", "gpt-oss-120b"):
        model = load(name)
        assert model.kv_values_per_token == 2 * model.layers * model.kv_heads * model.head_dim


@pytest.mark.parametrize("config", [V2_LITE, CONFIGS["deepseek-v3"]], ids=["v2-lite", "v3"])
def test_a_latent_cache_has_one_vector_and_its_rotary_part_a_layer(config: dict) -> None:
    each = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    assert from_config(config, "tried").kv_values_per_token == config["num_hidden_layers"] * each


@pytest.mark.parametrize("name", ["gemma-2-9b", "gemma-2-27b", "gpt-oss-120b"])
def test_every_other_layer_slides_and_the_first_does(name: str) -> None:
    for layers in (4, 5):
        found = windows(from_config(changed(name, num_hidden_layers=layers), "tried"))
        assert found == {CONFIGS[name]["sliding_window"]: (layers + 1) // 2, None: layers // 2}


def test_five_of_six_layers_of_gemma3_slide() -> None:
    layers, window = GEMMA3_TEXT["num_hidden_layers"], GEMMA3_TEXT["sliding_window"]
    assert windows(from_config(GEMMA3_TEXT, "tried")) == {window: layers - layers // 6, None: layers // 6}
    every_second = GEMMA3_TEXT | {"sliding_window_pattern": 2}
    assert windows(from_config(every_second, "tried")) == {window: layers - layers // 2, None: layers // 2}


def test_qwen2_slides_only_when_told_and_from_the_layer_it_names() -> None:
    config, layers = CONFIGS["qwen2.5-7b"], CONFIGS["qwen2.5-7b"]["num_hidden_layers"]
    assert windows(from_config(config, "tried")) == {None: layers}
    sliding = config | {"use_sliding_window": True, "max_window_layers": 20}
    assert windows(from_config(sliding, "tried")) == {None: 20, config["sliding_window"]: layers - 20}


@pytest.mark.parametrize(
    ("name", "of_class"), [("mistral-7b-v0.1", 4096), ("mixtral-8x7b-v0.1", None), ("phi-3-mini-4k", None)]
)
def test_every_layer_slides_unless_the_window_is_null(name: str, of_class: int | None) -> None:
    layers = CONFIGS[name]["num_hidden_layers"]
    assert windows(from_config(changed(name, sliding_window=77), "tried")) == {77: layers}
    assert windows(from_config(changed(name, sliding_window=None), "tried")) == {None: layers}
    absent = from_config(without(CONFIGS[name], "sliding_window"), "tried")
    assert windows(absent) == {of_class: layers}
    assert sum(line.startswith("sliding_window: absent, taken as") for line in absent.defaults) == 1


@pytest.mark.parametrize("name", ["gemma-2-9b", "gemma-3-1b", "gpt-oss-120b", "qwen2.5-7b"])
@given(data=st.data())
def test_layer_types_decide_where_they_are_given(name: str, data: st.DataObject) -> None:
    layers = CONFIGS[name]["num_hidden_layers"]
    kinds = st.sampled_from(["sliding_attention", "full_attention"])
    types = data.draw(st.lists(kinds, min_size=layers, max_size=layers))
    found = windows(from_config(changed(name, layer_types=types), "tried"))
    assert found.get(CONFIGS[name]["sliding_window"], 0) == types.count("sliding_attention")
    assert found.get(None, 0) == types.count("full_attention")


# Laws


@pytest.mark.parametrize("name", model_names())
def test_parts_sum_to_the_total(name: str) -> None:
    model = load(name)
    assert sum(model.parts.values()) == model.parameters
    assert all(size > 0 for size in model.parts.values())
    assert sum(run.layers for run in model.caches) == model.layers
    assert 0 < model.active_parameters <= model.parameters


@given(st.sampled_from(model_names()), st.integers(1, 200), st.integers(1, 50))
def test_more_layers_have_more_parameters_and_a_larger_cache(name: str, layers: int, more: int) -> None:
    field = "n_layer" if "n_layer" in CONFIGS[name] else "num_hidden_layers"
    few, many = (from_config(changed(name, **{field: count}), "tried") for count in (layers, layers + more))
    assert many.parameters > few.parameters
    assert many.kv_values_per_token > few.kv_values_per_token


@given(st.sampled_from(model_names()), st.integers(1, 10**6))
def test_a_token_more_in_the_vocabulary_is_a_row_more_in_embedding_and_head(name: str, vocab: int) -> None:
    tied, untied = (
        [from_config(changed(name, vocab_size=size, tie_word_embeddings=tie), "tried") for size in (vocab, vocab + 1)]
        for tie in (True, False)
    )
    assert tied[1].parameters - tied[0].parameters == tied[0].hidden
    assert untied[1].parameters - untied[0].parameters == 2 * untied[0].hidden


@pytest.mark.parametrize("name", model_names())
def test_order_quantization_and_unknown_fields_change_nothing(name: str) -> None:
    config = dict(reversed(CONFIGS[name].items()))
    config |= {"quantization_config": {"bits": 4}, "torch_dtype": "bfloat16", "architectures": ["X"], "rope_theta": 1.5}
    found = from_config(config, name)
    assert replace(found, defaults=(), notes=()) == load(name)
    assert all("quantized" in note for note in found.notes)


# As they are released: what equals the class's default is left out

GEMMA_3 = {  # Google's files, with the language parameters of the weights beside them
    "4b": ({"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}, 3_880_263_168),
    "12b": (
        {"num_attention_heads": 16, "num_key_value_heads": 8, "hidden_size": 3840, "intermediate_size": 15360,
         "num_hidden_layers": 48},
        11_766_034_176,
    ),
    "27b": (
        {"num_attention_heads": 32, "num_key_value_heads": 16, "hidden_size": 5376, "intermediate_size": 21504,
         "num_hidden_layers": 62, "head_dim": 128},
        27_009_346_304,
    ),
}  # fmt: skip


@pytest.mark.parametrize("size", GEMMA_3)
def test_gemma_3_has_its_count_from_its_released_form(size: str) -> None:
    fields, count = GEMMA_3[size]
    text = {"model_type": "gemma3_text", "sliding_window": 1024, **fields}
    model = from_config({"model_type": "gemma3", "text_config": text, "vision_config": {}}, "tried")
    assert model.parameters == count
    assert any("in transformers 5." in line for line in model.defaults)


def test_llavas_language_model_has_its_count_from_what_its_file_states() -> None:
    model = from_config({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}}, "tried")
    assert model.parameters == load("llama-2-7b").parameters + 2 * 64 * 4096


def test_a_tied_head_may_be_said_beside_the_language_model() -> None:
    text = without(GEMMA3_TEXT, "tie_word_embeddings")
    tied, apart = (from_config({"model_type": "gemma3", "tie_word_embeddings": tied, "text_config": text}, "tried")
                   for tied in (True, False))  # fmt: skip
    assert apart.parameters - tied.parameters == apart.vocab * apart.hidden


def test_another_name_of_a_field_is_read() -> None:
    experts = without(CONFIGS["qwen3-30b-a3b"], "num_experts") | {"num_local_experts": 128}
    assert from_config(experts, "tried").leaves == load("qwen3-30b-a3b").leaves
    pattern = without(GEMMA3_TEXT, "sliding_window_pattern", "layer_types") | {"_sliding_window_pattern": 3}
    assert windows(from_config(pattern, "tried"))[None] == pattern["num_hidden_layers"] // 3


def test_gpt_oss_may_be_without_attention_biases() -> None:
    biased, plain = (from_config(changed("gpt-oss-120b", attention_bias=flag), "tried") for flag in (True, False))
    one = biased.hidden + biased.head_dim * (biased.heads + 2 * biased.kv_heads)
    assert biased.parameters - plain.parameters == biased.layers * one


@pytest.mark.parametrize("constant", ["Infinity", "-Infinity", "NaN"])
def test_a_constant_in_a_field_that_nobody_reads_does_no_harm(constant: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["llama-3-8b"])[:-1] + f', "time_step_limit": [0.0, {constant}]}}')
    assert load(str(path)).parameters == load("llama-3-8b").parameters


ORACLE = json.loads((Path(__file__).parents[1] / "cases" / "oracle.json").read_text())


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: case["family"])
def test_transformers_builds_as_many_parameters(case: dict) -> None:
    model = from_config(case["config"], "tried")
    # DeepSeek-V3's correction bias is a buffer there.
    buffers = sum(leaf.parameters for leaf in model.leaves if leaf.name == "router.bias")
    assert model.parameters - buffers == case["parameters"]


# Names and defaults


def test_a_name_is_taken_in_any_case_and_a_path_is_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["llama-3-8b"]))
    assert load("Llama-3-8B") == load("llama-3-8b")
    assert load(str(path)).leaves == load("llama-3-8b").leaves


def test_a_near_miss_is_answered_with_the_name_that_was_meant() -> None:
    with pytest.raises(InputError, match="did you mean llama-3-8b") as caught:
        load("lama-3-8b")
    assert "'lama-3-8b'" in str(caught.value)
    assert "did you mean mixtral?" in refusal(changed("llama-3-8b", model_type="mixtrall"))
    for other in ("zzzzzzzz", "llama4", "qwen3_next", "ministral", "gemma3n", "phi4", "mistral3", "qwen2_moe", ""):
        assert "did you mean" not in refusal(changed("llama-3-8b", model_type=other)), other
    for slip, name in (("lama", "llama"), ("gpt-oss", "gpt_oss"), ("Mistral", "mistral"), ("mitxral", "mixtral")):
        assert f"did you mean {name}?" in refusal(changed("llama-3-8b", model_type=slip))


@pytest.mark.parametrize("source", ["meta-llama/Llama-3.1-8B", "https://example.com/org/model", "Qwen/Qwen3-8B"])
def test_what_lies_elsewhere_is_not_fetched_and_says_so(source: str) -> None:
    with pytest.raises(InputError, match="nothing is fetched; give a bundled name, or the path"):
        load(source)


@pytest.mark.parametrize("name", ["", ".", "/", "a\0b", "x" * 10_000, "llama-3-8b\n", "no/such/config.json"])
def test_what_is_neither_a_name_nor_a_file_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load(name)
    assert len(str(caught.value).splitlines()) == 1


DEFAULTS = [
    ("llama-2-7b", "num_key_value_heads", 32),
    ("llama-3-8b", "tie_word_embeddings", False),
    ("llama-3-8b", "attention_bias", False),
    ("llama-3-8b", "head_dim", 128),
    ("qwen3-8b", "head_dim", 128),
    ("qwen3-30b-a3b", "head_dim", 64),
    ("gemma-2b", "head_dim", 256),
    ("gemma-2-9b", "head_dim", 256),
    ("gemma-2b", "tie_word_embeddings", True),
    ("gemma-2-9b", "tie_word_embeddings", True),
    ("gemma-3-1b", "tie_word_embeddings", True),
    ("gpt-oss-120b", "tie_word_embeddings", False),
    ("deepseek-v3", "tie_word_embeddings", False),
    ("gemma-3-1b", "head_dim", 256),
    ("gemma-3-1b", "sliding_window_pattern", 6),
    ("gpt-oss-120b", "head_dim", 64),
    ("gpt2", "n_inner", 4 * 768),
    ("gpt2", "tie_word_embeddings", True),
    ("qwen3-30b-a3b", "decoder_sparse_step", 1),
    ("qwen3-30b-a3b", "mlp_only_layers", []),
    ("qwen2.5-7b", "use_sliding_window", False),
    ("llama-3-8b", "mlp_bias", False),
    ("deepseek-v3", "moe_layer_freq", 1),
    ("deepseek-v3", "attention_bias", False),
]


@pytest.mark.parametrize(("name", "field", "value"), DEFAULTS, ids=lambda value: str(value))
def test_a_default_that_is_taken_is_listed_with_its_value(name: str, field: str, value: object) -> None:
    given_, left = (from_config(config, "tried")
                    for config in (changed(name, **{field: value}), without(CONFIGS[name], field)))  # fmt: skip
    assert (left.leaves, left.caches) == (given_.leaves, given_.caches)
    assert not any(line.startswith(f"{field}:") for line in given_.defaults)
    lines = [line for line in left.defaults if line.startswith(f"{field}: absent, taken as {json.dumps(value)}")]
    assert len(lines) == 1


# Read by no rule of their architecture: latent attention has no KV heads, a window that is off has no width.
UNREAD = {
    ("deepseek_v3", "num_key_value_heads"),
    ("qwen2", "sliding_window"),
    ("qwen2", "max_window_layers"),
    ("qwen3_moe", "intermediate_size"),  # no layer is dense
}


@pytest.mark.parametrize("name", model_names())
def test_a_field_that_is_left_out_is_refused_by_name_or_listed_as_a_default(name: str) -> None:
    for field in CONFIGS[name]:
        try:
            model = from_config(without(CONFIGS[name], field), "tried")
        except InputError as error:
            assert field in str(error)  # missing, or its class's default contradicts what is there
        else:
            if field == "max_position_embeddings":  # no shape follows from it, and no note without it
                assert model.positions is None
                continue
            unread = (CONFIGS[name]["model_type"], field) in UNREAD
            assert any(line.startswith(f"{field}: absent") for line in model.defaults) != unread, field


def test_a_multimodal_configuration_is_answered_for_its_language_model_and_says_so() -> None:
    whole = from_config({"model_type": "gemma3", "vision_config": {}, "text_config": GEMMA3_TEXT}, "tried")
    alone = from_config(GEMMA3_TEXT, "tried")
    assert (whole.leaves, whole.caches) == (alone.leaves, alone.caches)
    assert any("multimodal" in note and "language model" in note for note in whole.notes)
    assert not any("multimodal" in note for note in alone.notes)
    assert all(line.startswith("text_config.") for line in whole.defaults)
    broken = {"model_type": "gemma3", "text_config": GEMMA3_TEXT | {"hidden_size": "2560"}}
    assert "text_config.hidden_size: '2560' is text" in refusal(broken)


# What is wrong, in one line that names the field


@pytest.mark.parametrize("wrong", [-1, 0, 1.5, 4096.0, True, "4096", [], {}, LARGEST_SIZE + 1, 10**40])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("llama-3-8b", "num_hidden_layers"),
        ("llama-3-8b", "hidden_size"),
        ("llama-3-8b", "num_attention_heads"),
        ("llama-3-8b", "num_key_value_heads"),
        ("llama-3-8b", "head_dim"),
        ("llama-3-8b", "intermediate_size"),
        ("llama-3-8b", "vocab_size"),
        ("llama-3-8b", "max_position_embeddings"),
        ("gpt2", "n_positions"),
        ("gpt2", "n_inner"),
        ("mistral-7b-v0.1", "sliding_window"),
        ("mixtral-8x7b-v0.1", "num_local_experts"),
        ("deepseek-v3", "q_lora_rank"),
        ("deepseek-v3", "moe_layer_freq"),
    ],
)
def test_a_size_that_is_no_whole_number_in_range_is_refused_by_name(name: str, field: str, wrong: object) -> None:
    assert f"tried: {field}: " in refusal(changed(name, **{field: wrong}))


@pytest.mark.parametrize("wrong", [0, 1, 0.0, "", "false", [], {}])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("llama-3-8b", "tie_word_embeddings"),
        ("llama-3-8b", "attention_bias"),
        ("llama-3-8b", "mlp_bias"),
        ("qwen2.5-7b", "use_sliding_window"),
        ("deepseek-v3", "attention_bias"),
    ],
)
def test_a_flag_that_is_neither_true_nor_false_is_refused_by_name(name: str, field: str, wrong: object) -> None:
    assert f"tried: {field}: " in refusal(changed(name, **{field: wrong}))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (without(V2_LITE, "num_experts_per_tok"), "num_experts_per_tok: is missing"),
        (changed("llama-3-8b", hidden_size=float("nan")), "hidden_size: 'nan' is not a whole number"),
        (changed("llama-3-8b", num_hidden_layers=float("-inf")), "num_hidden_layers: '-inf' is not a whole number"),
        (changed("qwen3-30b-a3b", num_local_experts=64), "num_experts: '128' is not what num_local_experts says, '64'"),
        (without(CONFIGS["llama-3-8b"], "model_type"), "model_type: is missing"),
        (changed("llama-3-8b", model_type=["llama"]), "model_type: "),
        (changed("llama-3-8b", num_attention_heads=24), "head_dim: is missing, and 24 heads do not divide"),
        (changed("llama-3-8b", num_key_value_heads=5), "num_key_value_heads: 5 does not divide"),
        (changed("llama-3-8b", num_key_value_heads=64), "num_key_value_heads: 64 does not divide"),
        (changed("gpt2", n_head=7), "n_head: 7 does not divide n_embd, 768"),
        (changed("mixtral-8x7b-v0.1", num_experts_per_tok=9), "num_experts_per_tok: 9 is more than"),
        (changed("qwen3-30b-a3b", mlp_only_layers=[48]), "mlp_only_layers: "),
        (changed("qwen3-30b-a3b", mlp_only_layers=[True]), "mlp_only_layers: "),
        (changed("qwen3-30b-a3b", mlp_only_layers=3), "mlp_only_layers: "),
        (changed("gemma-2-9b", layer_types=["full_attention"]), "layer_types: has 1 entries for 42 layers"),
        (changed("gemma-2-9b", layer_types=["chunked"] * 42), "layer_types: "),
        (changed("gemma-2-9b", layer_types="full_attention"), "layer_types: "),
        ({"model_type": "gemma3", "text_config": "gemma3_text"}, "text_config: "),
        ({"model_type": "gemma3", "text_config": [GEMMA3_TEXT]}, "text_config: "),
        ({"model_type": "gemma3", "text_config": None}, "model_type: "),
        ({"model_type": "gemma3", "text_config": {}}, "text_config.model_type: is missing"),
        ({}, "model_type: is missing"),
        ([], "not a JSON object"),
        (None, "not a JSON object"),
        (7, "not a JSON object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_configuration_that_cannot_be_right_is_refused(config: object, words: str) -> None:
    assert words in refusal(config)


def test_an_unknown_architecture_is_told_which_ones_are_read() -> None:
    message = refusal(changed("llama-3-8b", model_type="mamba"))
    assert all(kind in message for kind in supported())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space of a process")
@pytest.mark.parametrize("name", ["llama-3-8b", "gemma-2-9b", "gpt2", "qwen3-30b-a3b", "deepseek-v3"])
def test_the_largest_number_of_layers_takes_neither_time_nor_memory(name: str) -> None:
    """In a process of its own with one GiB of address space: what is wrong here would take the machine with it."""
    field = "n_layer" if "n_layer" in CONFIGS[name] else "num_hidden_layers"
    script = f"""
import resource
from tpu_systems_audit.models import from_config
from tpu_systems_audit.units import InputError
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
try:
    from_config({changed(name, **{field: LARGEST_SIZE})!r}, "tried")
except InputError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr[-300:]


# Files


def file_refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON at line 1, column 1"),
        (b"{'model_type': 'llama'}", "is not JSON"),
        (b'{"hidden_size": 1, "hidden_size": 2}', "'hidden_size' stands in it twice"),
        (b'{"tie_word_embeddings": 1, "tie_word_embeddings": true}', "'tie_word_embeddings' stands in it twice"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "too long"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'"\xff"', "is not UTF-8 at byte 1"),
        (b" " * (LARGEST_FILE_BYTES + 1), f"is larger than {LARGEST_FILE_BYTES} bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_configuration_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert words in file_refusal(path)


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2"])
def test_a_file_that_was_cut_off_anywhere_is_refused(name: str, tmp_path: Path) -> None:
    whole, path = json.dumps(CONFIGS[name]), tmp_path / "config.json"
    for length in range(len(whole)):
        path.write_text(whole[:length])
        assert "is not JSON" in file_refusal(path)


def test_a_directory_is_refused_and_the_file_in_it_is_named(tmp_path: Path) -> None:
    assert "is a directory; name a config.json" in file_refusal(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert f"is a directory; name {tmp_path / 'config.json'}" in file_refusal(tmp_path)
    assert "cannot be read" in file_refusal(tmp_path / "absent.json")


def test_a_byte_order_mark_and_a_field_repeated_with_its_value_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'\xef\xbb\xbf{"hidden_size": 4096, "hidden_size": 4096}')
    assert read_config(path) == {"hidden_size": 4096}


# Whatever is done to a configuration

# Letters that would break a line or an encoding; drawing from all of Unicode takes a second to prepare.
words = st.text("a_0 é'\"\\\n\r\t\0\x1b\u2028\ud800", max_size=12)
sizes = st.integers(-5, 3000) | st.integers(LARGEST_SIZE + 1, 10**30)
scalars = st.none() | st.booleans() | sizes | st.floats() | words | st.sampled_from(supported())
anything = st.recursive(scalars, lambda some: st.lists(some, max_size=4) | st.dictionaries(words, some, max_size=3))
LAYERS = ("num_hidden_layers", "n_layer")  # the test of the largest number of layers has a process of its own
OPTIONAL = (
    *("attention_bias", "mlp_bias", "head_dim", "layer_types", "sliding_window", "use_sliding_window"),
    *("max_window_layers", "sliding_window_pattern", "max_position_embeddings", "n_inner", "text_config"),
)


@given(st.data())
def test_any_change_gives_a_model_or_one_line(data: st.DataObject) -> None:
    config = dict(CONFIGS[data.draw(st.sampled_from(model_names()))])
    for field in data.draw(st.lists(st.sampled_from((*config, *OPTIONAL)), min_size=1, max_size=4, unique=True)):
        if data.draw(st.booleans()):
            config[field] = data.draw(anything if field in LAYERS else anything | st.integers(1, LARGEST_SIZE))
        else:
            config.pop(field, None)
    if data.draw(st.booleans()):
        config = {"model_type": "gemma3", "text_config": config}
    try:
        model = from_config(config, "tried")
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        assert str(error).startswith("tried: ")
    else:
        assert model.parameters > 0
        assert model.kv_values_per_token > 0


@given(st.binary(max_size=200) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_file_gives_a_document_or_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(content)
    try:
        read_config(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1


# What a file says beside its shapes


def test_a_file_with_quantized_weights_says_which_flag_asks_for_them() -> None:
    config = changed("gpt-oss-120b", quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": []})
    (note,) = from_config(config, "tried").notes
    assert "'mxfp4'" in note and "--weights-dtype" in note


def test_layers_that_predict_further_tokens_are_said_not_to_be_counted() -> None:
    model = from_config(changed("deepseek-v3", num_nextn_predict_layers=1), "tried")
    assert model.parameters == load("deepseek-v3").parameters
    assert any("num_nextn_predict_layers: 1" in note for note in model.notes)


@pytest.mark.parametrize(
    ("scaling", "positions"),
    [
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"rope_type": "yarn", "factor": 4.0}, 131072),
        ({"rope_type": "linear", "factor": 4.0}, 32768),
        ({"rope_type": "yarn", "factor": "4"}, 32768),
        ({"rope_type": "yarn", "factor": 1e300}, 32768),
        ("yarn", 32768),
        (None, 32768),
    ],
)
def test_a_scaling_of_positions_extends_them(scaling: object, positions: int) -> None:
    config = changed("qwen3-8b", max_position_embeddings=32768, rope_scaling=scaling)
    assert from_config(config, "tried").positions == positions


def test_every_bundled_model_states_its_positions() -> None:
    assert [name for name in model_names() if load(name).positions is None] == []
