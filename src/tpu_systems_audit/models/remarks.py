"""What a configuration says beside its shapes: how far its positions reach, and what is in it and not counted."""

from tpu_systems_audit.models.config import Fields
from tpu_systems_audit.units import shown

LARGEST_SCALING = 10**6  # of positions, far beyond any that was published


def positions(fields: Fields) -> int | None:
    """Read the longest context that the configuration states, with what its scaling of rotary positions adds to it.

    Args:
        fields: of the language model.

    Raises:
        InputError: when it states one that is no size.

    >>> config = {"max_position_embeddings": 32768, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    >>> positions(Fields(config, "scaled"))
    131072
    """
    if fields.config.get("max_position_embeddings") is None:
        return None
    stated = fields.size("max_position_embeddings")
    scaling = fields.config.get("rope_scaling") or fields.config.get("rope_parameters")
    if not isinstance(scaling, dict) or "yarn" not in (scaling.get("rope_type"), scaling.get("type")):
        return stated
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings", stated)
    if not isinstance(factor, int | float) or type(original) is not int or not 1 <= factor < LARGEST_SCALING:
        return stated
    return max(stated, int(factor * original))


def remarks(fields: Fields) -> tuple[str, ...]:
    """Say what else stands in the file, because the count and the sizes leave it out.

    Args:
        fields: of the language model.

    >>> remarks(Fields({"num_nextn_predict_layers": 1}, "deep"))
    ('extra layers that predict further tokens (num_nextn_predict_layers: 1) are not counted',)
    """
    notes = []
    quantized = fields.config.get("quantization_config")
    if isinstance(quantized, dict):
        method = shown(quantized["quant_method"]) if "quant_method" in quantized else "a method it does not name"
        asked = "sizes are for bf16 until --weights-dtype says otherwise"
        notes.append(f"the file stores its weights quantized by {method}; {asked}")
    extra = fields.config.get("num_nextn_predict_layers")
    if type(extra) is int and extra > 0:
        notes.append(f"extra layers that predict further tokens (num_nextn_predict_layers: {extra}) are not counted")
    return tuple(notes)
