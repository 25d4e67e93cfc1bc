"""Published parameter counts and KV caches, each as calls of the package."""

from fractions import Fraction
from math import floor

from published.inputs import FLAT, Inputs, Number, Route, decoder, exact, kept
from tpu_systems_audit.chips import parse_slice
from tpu_systems_audit.models import Cache, Leaf, Model, from_config, load
from tpu_systems_audit.sizing import serve_state
from tpu_systems_audit.units import GB, GIB, dtype_bits, gib

KIB, MIB, MB = 2**10, 2**20, 10**6

# Two models that the scaling book asks about in several places.
BOOK_18B = {"layers": 64, "d": 4096, "f": 16384, "heads": 32, "kv_heads": 8, "head_dim": 256, "vocab": 32128}
BOOK_70B = 70 * 10**9

# The text half of Gemma 3 27B, from its config.json; its total is checked against the published one.
GEMMA_3_27B = {"layers": 62, "d": 5376, "f": 21504, "heads": 32, "kv_heads": 16, "head_dim": 128, "vocab": 262208}


def without_norms(model: Model, active: bool = False) -> int:
    """Parameters without norms and routers, as sources count that keep to the large matrices.

    Args:
        model: the model.
        active: only those that one token passes through.
    """
    count = model.active_parameters if active else model.parameters
    return count - model.parts["norms"] - model.parts.get("router", 0)


def book_18b(**more: object) -> Model:
    """The 18B model of the scaling book; embedding and head share their weights."""
    return decoder(BOOK_18B | more, tie_word_embeddings=True)


def gemma_3_27b() -> Model:
    """The language model of Gemma 3 27B.

    >>> gemma_3_27b().parameters
    27009346304
    """
    return decoder(GEMMA_3_27B, "gemma3_text", sliding_window=1024)


def sixteen_experts(x: Inputs) -> Model:
    """The book's 18B model with a mixture of experts for each MLP."""
    more = {"num_local_experts": x.get("experts", 16), "num_experts_per_tok": x.get("top_k", 2)}
    return decoder(x, "mixtral", tie_word_embeddings=True, sliding_window=None, **more)


def gpt_blocks(x: Inputs) -> int:
    """Parameters without embeddings of a GPT with biases, whose blocks GPT-2 and GPT-NeoX have in common."""
    config = {"model_type": "gpt2", "n_embd": x["d"], "n_layer": x["layers"], "n_head": 8}
    model = from_config(config | {"n_positions": 2048, "vocab_size": 50304}, "as published")
    return model.parameters - model.parts["embedding"]


def cache_bytes(x: Inputs) -> int:
    """The KV cache of the layers and heads that a source states, in bytes; of one token where it states no length."""
    model = decoder(
        {"layers": x["layers"], "kv_heads": x.get("kv_heads", x.get("kv_dim")), "head_dim": x.get("head_dim", 1)}
    )
    return serve_state(model, x.get("seq", 1), 1, kv_dtype=FLAT[x["bytes_per_elem"]]).kv_cache_bytes


def token_bytes(name: str, kv_dtype: str = "bf16") -> int:
    """What a token adds to the cache of a bundled model, in bytes."""
    return serve_state(load(name), 1, 1, kv_dtype=kv_dtype).kv_bytes_per_token


def free_bytes(topology: str, x: Inputs, weight_bytes: float) -> int:
    """HBM that the weights of the book's 70B model leave free on a v5e slice."""
    hbm_bytes: int = parse_slice(f"v5e:{topology}")[1].chips * x["hbm_gb"] * GB
    return hbm_bytes - kept(BOOK_70B, weight_bytes)


def sequences(free: Number, model: Model, context: int, dtype: str) -> int:
    """Whole sequences whose caches fit into *free* bytes.

    >>> sequences(2 * GIB, load("llama-3-8b"), 8192, "bf16")
    2
    """
    each = Fraction(context * model.kv_values_per_token * dtype_bits(dtype, "dtype"), 8)
    return floor(exact(free) / each)


def batch_beside(model: Model, x: Inputs) -> int:
    """Sequences that fit beside the weights, both of one byte a value."""
    weights = serve_state(model, 1, 1, weights_dtype="fp8").weights_bytes
    return sequences(exact(x["chips"]) * exact(x["hbm_bytes"]) - weights, model, x["seq"], "fp8")


def served_70b(x: Inputs) -> int:
    """Weights and cache of LLaMA 3 70B with one byte a value."""
    return serve_state(load("llama-3-70b"), x["seq"], x["batch"], "fp8", "fp8").total_bytes


def expanded_latent(x: Inputs) -> int:
    """What a cache of DeepSeek's expanded keys and values would take a token, in bytes."""
    run = Cache(x["layers"], x["heads"] * (x["qk_dim"] + x["v_dim"]), 2 * x["heads"], None)
    values = run.layers * run.values_per_token
    return values * int(x["bytes_per_elem"])


def _matrix(rows: int, columns: int, count: int = 1) -> int:
    return Leaf("as published", "mlp", (rows, columns), count, "matrix").parameters


def _share_of_attention(x: Inputs) -> Fraction:
    parts = decoder(x).parts
    return Fraction(parts["attention"], parts["attention"] + parts["mlp"])


MODELS: dict[str, Route] = {
    "sb-tf-04": lambda x: decoder(x).parameters,
    "sb-tf-05": _share_of_attention,
    "sb-tr-10": lambda _: without_norms(load("llama-2-13b")),
    "sb-at-01": lambda x: without_norms(decoder(x)),
    "sb-inf-14": lambda x: without_norms(decoder(x, tie_word_embeddings=True)),
    "sl-27": lambda x: without_norms(sixteen_experts(x)),
    "sl-28": lambda x: without_norms(sixteen_experts(x), active=True),
    "sl-34": lambda x: _matrix(x["d"], x["f"]) * x["bytes_per_elem"] / MB,
    "pp-moe-01": lambda _: load("mixtral-8x7b-v0.1").active_parameters,
    "pp-moe-02": lambda _: load("qwen3-30b-a3b").active_parameters,
    "pp-moe-03": lambda _: load("deepseek-v3").active_parameters - load("deepseek-v3").parts["embedding"],
    **dict.fromkeys(("pp-pythia-01", "pp-pythia-02", "pp-pythia-03", "pp-pythia-04"), gpt_blocks),
    "pp-hf-01": lambda x: kept(x["params"], x["bytes_per_elem"]) / GB,
    "pp-hf-03": lambda x: gib(kept(x["params"], x["bytes_per_elem"])),
    **dict.fromkeys(("doc-28", "doc-29", "doc-31"), lambda x: kept(x["params"], x["bytes_per_elem"]) / MIB),
    "doc-38": lambda _: gemma_3_27b().parameters - gemma_3_27b().parts["embedding"],
    "doc-39": lambda _: gemma_3_27b().parts["embedding"],
    "doc-40": lambda x: load("gpt2").parameters + _matrix(x["positions"], x["positions"], x["layers"]),
    "sb-tf-03": lambda x: gib(cache_bytes(x)),
    "sb-tf-06": lambda x: cache_bytes(x) / KIB,
    "sb-inf-03": lambda x: cache_bytes(x) / GB,
    "sb-inf-04": lambda x: gib(cache_bytes(x)),
    "sb-ai-01": lambda x: cache_bytes(x) / KIB,
    "sb-ai-02": lambda x: serve_state(load("llama-3-70b"), x["seq"], 1, kv_dtype="fp8").kv_cache_bytes / GB,
    "sb-ai-04": lambda x: served_70b(x) / GB,
    "sb-ai-11": lambda x: kept(x["params"], x["bits"] / 8) / GB,
    "sb-ai-14": lambda x: free_bytes("4x4", x, 2) / GB,
    "sb-ai-15": lambda x: free_bytes("2x4", x, 1) / GB,
    "sb-ai-24": lambda x: free_bytes("4x8", x, 2) / GB,
    "sl-18": lambda x: free_bytes("4x8", x, 2) / GB,
    "sb-ai-16": lambda x: sequences(x["free_gb"] * GB, load("llama-3-70b"), x["seq"], "bf16"),
    "sb-ai-17": lambda x: sequences(free_bytes("2x4", x, 1), load("llama-3-70b"), x["seq"], "int8"),
    "sb-ai-18": lambda x: sequences(free_bytes("2x2", x, 0.5), load("llama-3-70b"), x["seq"], "int4"),
    "sl-19": lambda x: sequences(x["free_gb"] * GB, load("llama-3-70b"), x["seq"], "bf16"),
    "sl-22": lambda x: cache_bytes(x) / 1000,
    "sl-23": lambda x: batch_beside(book_18b(), x),
    "sl-24": lambda x: batch_beside(book_18b(), x),
    "sl-25": lambda x: batch_beside(book_18b(kv_heads=x["kv_heads"]), x),
    "pp-vllm-05": lambda x: Fraction(x["kv_gib"] * GIB, cache_bytes(x | {"kv_heads": 1, "head_dim": x["hidden"]})),
    "pp-kv-01": lambda _: token_bytes("deepseek-v3") / 1000,
    "pp-kv-02": lambda _: token_bytes("qwen2.5-72b") / 1000,
    "pp-kv-03": lambda _: token_bytes("llama-3.1-405b") / 1000,
    "pp-kv-05": lambda _: token_bytes("deepseek-v3") / KIB,
    "pp-kv-06": lambda _: token_bytes("llama-2-13b") / MB,
    "pp-kv-07": expanded_latent,
    "doc-33": lambda _: Fraction(token_bytes("qwen2.5-72b"), token_bytes("deepseek-v3")),
    "doc-34": lambda _: Fraction(token_bytes("llama-3.1-405b"), token_bytes("deepseek-v3")),
    "doc-35": lambda x: serve_state(gemma_3_27b(), x["seq"], 1).kv_cache_bytes / GB,
}
