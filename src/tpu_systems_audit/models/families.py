"""What each architecture is made of: its arrays per layer, its caches, and the defaults it defines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tpu_systems_audit.models.config import LARGEST_DEPTH, Fields
from tpu_systems_audit.models.remarks import positions, remarks
from tpu_systems_audit.models.shapes import Cache, Leaf, Model

SLIDING_ALWAYS = ("mistral", "mixtral", "phi3")
ALTERNATING = ("gemma2", "gpt_oss")
QUERY_KEY_NORMS = ("qwen3", "qwen3_moe", "gemma3_text")
FOUR_NORMS = ("gemma2", "gemma3_text")
MAY_HAVE_BIASES = ("llama", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "gpt_oss")
MIXTURES = ("mixtral", "qwen3_moe", "gpt_oss")
TIED = ("gemma", "gemma2", "gemma3_text", "gpt2")
HEAD_DIM = {"qwen3": 128, "gemma": 256, "gemma2": 256, "gemma3_text": 256, "gpt_oss": 64}


def supported() -> tuple[str, ...]:
    """The values of ``model_type`` that are read."""
    return tuple(_BUILDERS)


def build(fields: Fields, notes: tuple[str, ...]) -> Model:
    """Build the model of *fields*, whose ``model_type`` is supported."""
    model = _BUILDERS[fields.config["model_type"]](fields)
    notes = (*notes, *fields.notes, *remarks(fields))
    return replace(model, defaults=tuple(fields.defaults), notes=notes)


def _decoder(fields: Fields) -> Model:
    """Every architecture with grouped-query attention and a gated MLP, dense or a mixture."""
    kind = fields.config["model_type"]
    layers, hidden = fields.size("num_hidden_layers", most=LARGEST_DEPTH), fields.size("hidden_size")
    heads, kv_heads, head_dim = _heads(fields, kind, hidden)
    attention = _attention(fields, kind, hidden, heads * head_dim, kv_heads * head_dim)
    if kind in QUERY_KEY_NORMS:
        attention += [Leaf("attention.q_norm", "norms", (head_dim,), 1, "norm"),
                      Leaf("attention.k_norm", "norms", (head_dim,), 1, "norm")]  # fmt: skip
    if kind == "gpt_oss":
        attention.append(Leaf("attention.sinks", "attention", (heads,), 1, "bias"))
    attention.append(Leaf("norm", "norms", (hidden,), 4 if kind in FOUR_NORMS else 2, "norm"))
    blocks, widths, experts, per_token = _mlps(fields, kind, layers, hidden)
    return _model(
        fields, layers, hidden, heads, kv_heads, head_dim,
        blocks=[(count, attention + mlp) for count, mlp in blocks],
        caches=_caches(_slides(fields, kind, layers), 2 * kv_heads * head_dim, 2 * kv_heads),
        intermediate=max(widths), experts=experts, experts_per_token=per_token,
    )  # fmt: skip


def _heads(fields: Fields, kind: str, hidden: int) -> tuple[int, int, int]:
    heads = fields.size("num_attention_heads")
    said = "num_key_value_heads" in fields.config  # null, said or by default, stands for as many as there are heads
    kv_default = heads if said or fields.class_defaults.get("num_key_value_heads", 0) is None else None
    kv_heads = fields.size("num_key_value_heads", kv_default, "as many as num_attention_heads")
    if heads % kv_heads:
        raise fields.refuse("num_key_value_heads", f"{kv_heads} does not divide num_attention_heads, {heads}")
    head_dim = fields.config.get("head_dim")
    if head_dim is None and kind not in HEAD_DIM and hidden % heads:
        raise fields.refuse("head_dim", f"is missing, and {heads} heads do not divide hidden_size {hidden}")
    default, why = hidden // heads, "hidden_size / num_attention_heads"
    if kind in HEAD_DIM:
        default, why = HEAD_DIM[kind], f"what {kind} defines"
    return heads, kv_heads, fields.size("head_dim", max(1, default), why)


def _attention(fields: Fields, kind: str, hidden: int, query: int, kv: int) -> list[Leaf]:
    """The four projections of one layer, with the biases that the architecture or the configuration gives them."""
    shapes = {"q": (hidden, query), "k": (hidden, kv), "v": (hidden, kv), "o": (query, hidden)}
    biased = "qkv" if kind == "qwen2" else ""
    if kind in MAY_HAVE_BIASES and fields.flag("attention_bias", kind == "gpt_oss"):
        biased = "qkvo"
    return _matrices("attention", shapes, biased)


def _matrices(part: str, shapes: dict[str, tuple[int, int]], biased: Iterable[str] = "", count: int = 1) -> list[Leaf]:
    """Matrices of one part of a layer, and a bias over the outputs of those in *biased*."""
    matrices = [Leaf(f"{part}.{name}", part, shape, count, "matrix") for name, shape in shapes.items()]
    biases = [Leaf(f"{part}.{name}_bias", part, shapes[name][1:], count, "bias") for name in biased]
    return matrices + biases


def _gated(part: str, hidden: int, inner: int, biased: Sequence[str] = (), count: int = 1) -> list[Leaf]:
    shapes = {"gate": (hidden, inner), "up": (hidden, inner), "down": (inner, hidden)}
    return _matrices(part, shapes, biased, count)


def _mlps(fields: Fields, kind: str, layers: int, hidden: int) -> tuple[list, list[int], int, int]:
    """Groups of layers by their MLP, the inner widths a token passes, experts, and experts per token."""
    if kind not in MIXTURES:
        inner = fields.size("intermediate_size")
        biased = ("gate", "up", "down") if kind == "llama" and fields.flag("mlp_bias", False) else ()
        return [(layers, _gated("mlp", hidden, inner, biased))], [inner], 0, 0
    of_qwen = kind == "qwen3_moe"
    experts = fields.size(fields.either("num_experts", "num_local_experts") if of_qwen else "num_local_experts")
    inner = fields.size("moe_intermediate_size" if of_qwen else "intermediate_size")
    per_token = _per_token(fields, experts)
    biased = ("gate", "up", "down") if kind == "gpt_oss" else ()
    router = _matrices("router", {"router": (hidden, experts)}, ("router",) if kind == "gpt_oss" else ())
    sparse = router + _gated("experts", hidden, inner, biased, experts)
    if not of_qwen:
        return [(layers, sparse)], [per_token * inner], experts, per_token
    step = fields.size("decoder_sparse_step", 1, "every layer is sparse")
    dense_layers = fields.indices("mlp_only_layers", layers)
    count = sum(1 for i in range(layers) if i not in dense_layers and (i + 1) % step == 0)
    blocks, widths = [(count, sparse)], [per_token * inner]
    if count < layers:
        wide = fields.size("intermediate_size")
        blocks.append((layers - count, _gated("mlp", hidden, wide)))
        widths.append(wide)
    return blocks, widths, experts, per_token


def _per_token(fields: Fields, experts: int) -> int:
    per_token = fields.size("num_experts_per_tok")
    if per_token > experts:
        raise fields.refuse("num_experts_per_tok", f"{per_token} is more than there are experts, {experts}")
    return per_token


def _slides(fields: Fields, kind: str, layers: int) -> list[int | None]:
    """The window of each layer, None where it attends to everything."""
    given = fields.layer_types(layers)
    if given is not None:
        window = fields.size("sliding_window") if any(given) else None
        return [window if slides else None for slides in given]
    if kind in SLIDING_ALWAYS:
        return [fields.size_or_null("sliding_window", "attention to everything")] * layers
    if kind in ("qwen2", "qwen3", "qwen3_moe") and fields.flag("use_sliding_window", False):
        window, first = fields.size("sliding_window"), fields.size("max_window_layers", least=0)
        return [window if i >= first else None for i in range(layers)]
    if kind in ALTERNATING:
        window = fields.size("sliding_window")
        return [window if i % 2 == 0 else None for i in range(layers)]
    if kind == "gemma3_text":
        window = fields.size("sliding_window")
        named = fields.either("sliding_window_pattern", "_sliding_window_pattern")
        pattern = fields.size(named, 6, "five of six layers slide")
        return [window if (i + 1) % pattern else None for i in range(layers)]
    return [None] * layers


def _caches(windows: list[int | None], values: int, scales: int) -> tuple[Cache, ...]:
    return tuple(Cache(windows.count(window), values, scales, window) for window in dict.fromkeys(windows))


def _gpt2(fields: Fields) -> Model:
    hidden, heads = fields.size("n_embd"), fields.size("n_head")
    layers = fields.size("n_layer", most=LARGEST_DEPTH)
    if hidden % heads:
        raise fields.refuse("n_head", f"{heads} does not divide n_embd, {hidden}")
    inner = fields.size("n_inner", 4 * hidden, "4 x n_embd")
    attention = dict.fromkeys("qkvo", (hidden, hidden))
    block = [
        *_matrices("attention", attention, attention),
        *_matrices("mlp", {"up": (hidden, inner), "down": (inner, hidden)}, ("up", "down")),
        *_biased_norms(hidden, 2),
    ]
    model = _model(
        fields, layers, hidden, heads, heads, hidden // heads, blocks=[(layers, block)],
        caches=_caches([None] * layers, 2 * hidden, 2 * heads), intermediate=inner,
    )  # fmt: skip
    context = fields.size("n_positions")
    learned = Leaf("positions", "embedding", (context, hidden), 1, "embedding")
    final_bias = Leaf("final_norm_bias", "norms", (hidden,), 1, "bias")
    return replace(model, leaves=(*model.leaves, learned, final_bias), positions=context)


def _biased_norms(hidden: int, count: int) -> list[Leaf]:
    return [Leaf("norm", "norms", (hidden,), count, "norm"), Leaf("norm_bias", "norms", (hidden,), count, "bias")]


def _deepseek(fields: Fields) -> Model:
    """Multi-head latent attention, the first layers dense, the others a mixture with shared experts."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    layers = fields.size("num_hidden_layers", most=LARGEST_DEPTH)
    nope, rope, value, latent = map(fields.size, ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank"))
    biased = fields.flag("attention_bias", False)
    attention = [
        *_latent_queries(fields, hidden, heads * (nope + rope), biased),
        *_matrices("attention", {
            "kv_down": (hidden, latent + rope), "kv_up": (latent, heads * (nope + value)), "o": (heads * value, hidden),
        }, ("kv_down", "o") if biased else ()),
        Leaf("attention.kv_norm", "norms", (latent,), 1, "norm"),
        Leaf("norm", "norms", (hidden,), 2, "norm"),
    ]  # fmt: skip
    dense, sparse, inner, wide, experts, per_token = _deepseek_mlps(fields, hidden)
    first = fields.size("first_k_dense_replace", least=0)
    every = fields.size("moe_layer_freq", 1, "every layer after the dense ones")
    count = sum(1 for i in range(layers) if i >= first and i % every == 0)
    blocks = [(layers - count, attention + dense), (count, attention + sparse)]
    return _model(
        fields, layers, hidden, heads, heads, nope + rope, blocks=[block for block in blocks if block[0]],
        caches=_caches([None] * layers, latent + rope, 1), intermediate=max(inner, wide),
        experts=experts if count else 0, experts_per_token=per_token,
    )  # fmt: skip


def _latent_queries(fields: Fields, hidden: int, query: int, with_biases: bool) -> list[Leaf]:
    rank = fields.size_or_null("q_lora_rank", "queries without a latent")
    if rank is None:
        return _matrices("attention", {"q": (hidden, query)})
    biased = ("q_down",) if with_biases else ()
    shapes = {"q_down": (hidden, rank), "q_up": (rank, query)}
    return [*_matrices("attention", shapes, biased), Leaf("attention.q_norm", "norms", (rank,), 1, "norm")]


def _deepseek_mlps(fields: Fields, hidden: int) -> tuple[list[Leaf], list[Leaf], int, int, int, int]:
    wide, inner = fields.size("intermediate_size"), fields.size("moe_intermediate_size")
    experts, shared = fields.size("n_routed_experts"), fields.size("n_shared_experts", least=0)
    per_token = _per_token(fields, experts)
    sparse = _matrices("router", {"router": (hidden, experts)}) + _gated("experts", hidden, inner, (), experts)
    if shared:
        sparse += _gated("mlp", hidden, shared * inner)
    if fields.config["model_type"] == "deepseek_v3":  # a bias an expert steers the load without a loss
        sparse.append(Leaf("router.bias", "router", (experts,), 1, "bias"))
    return _gated("mlp", hidden, wide), sparse, (per_token + shared) * inner, wide, experts, per_token


def _model(
    fields: Fields, layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, *,
    blocks: list[tuple[int, list[Leaf]]], caches: tuple[Cache, ...], intermediate: int,
    experts: int = 0, experts_per_token: int = 0,
) -> Model:  # fmt: skip
    """Put layers between embedding and head."""
    kind, vocab = fields.config["model_type"], fields.size("vocab_size")
    leaves = [Leaf("embedding", "embedding", (vocab, hidden), 1, "embedding")]
    leaves += [replace(leaf, count=count * leaf.count) for count, block in blocks for leaf in block]
    leaves.append(Leaf("final_norm", "norms", (hidden,), 1, "norm"))
    if not fields.flag("tie_word_embeddings", kind in TIED):
        leaves.append(Leaf("head", "head", (hidden, vocab), 1, "matrix"))
    largest = max(sum(leaf.parameters for leaf in block) for _, block in blocks)
    return Model(
        fields.name, kind, layers, hidden, intermediate, heads, kv_heads, head_dim, vocab, tuple(leaves), caches,
        largest_layer_parameters=largest, experts=experts, experts_per_token=experts_per_token,
        positions=positions(fields),
    )  # fmt: skip


_BUILDERS: dict[str, Callable[[Fields], Model]] = {
    **dict.fromkeys((
        "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "phi3",
        "gpt_oss",
    ), _decoder),
    "gpt2": _gpt2,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
}  # fmt: skip
