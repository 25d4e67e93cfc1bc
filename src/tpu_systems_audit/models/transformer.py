"""A transformer from its configuration, by name or by path: the exact count, nothing guessed silently."""

import re
from functools import cache
from pathlib import Path

from tpu_systems_audit.models.config import Fields, read_config
from tpu_systems_audit.models.families import build, supported
from tpu_systems_audit.models.shapes import Model
from tpu_systems_audit.units import InputError, shown

MODELS = Path(__file__).with_name("bundled")


@cache
def model_names() -> tuple[str, ...]:
    """The bundled models, in natural order.

    >>> "llama-3-8b" in model_names()
    True
    """
    return tuple(sorted((path.stem for path in MODELS.glob("*.json")), key=_natural))


def load(source: str) -> Model:
    """Load a bundled model by its name, or any model by the path of its ``config.json``.

    Args:
        source: a bundled name in any case, or a path.

    Raises:
        InputError: when there is neither, or the configuration is wrong; one line says what.

    >>> load("llama-3-8b").parameters
    8030261248
    """
    if source.lower() in model_names():
        return _bundled(source.lower())
    path = Path(source)
    if not _exists(path):
        raise InputError(f"MODEL: {shown(source)} is neither a bundled model nor a file{_suggestion(source)}")
    return from_config(read_config(path), shown(source)[1:-1])


@cache
def _bundled(name: str) -> Model:
    return from_config(read_config(MODELS / f"{name}.json"), name)


def from_config(config: object, name: str) -> Model:
    """Build a model from a parsed configuration.

    Args:
        config: the JSON object of a ``config.json``.
        name: what to call it in messages.

    Raises:
        InputError: for an unknown ``model_type``, or a field that is missing, malformed or contradictory.

    >>> config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    ...           "vocab_size": 50257}
    >>> from_config(config, "gpt2").parameters
    124439808
    """
    if not isinstance(config, dict):
        raise InputError(f"{name}: is not a JSON object; the object of a config.json is right")
    fields, notes = Fields(config, name), []
    text = config.get("text_config")
    if text is not None and not isinstance(text, dict):
        raise fields.refuse("text_config", f"{shown(text)} is not an object; the language model's fields are right")
    if isinstance(text, dict) and config.get("model_type") not in supported():
        fields = Fields(text, name, "text_config.")
        whole = shown(config.get("model_type"))
        notes = [f"a multimodal configuration ({whole}): answered for its language model only"]
    kind = fields.config.get("model_type")
    if kind not in supported():
        problem = "is missing" if kind is None else f"{shown(kind)} is not supported{_near(str(kind), supported())}"
        raise fields.refuse("model_type", f"{problem}; one of {' '.join(supported())} is right")
    return build(fields, tuple(notes))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a null byte
        return False


def _suggestion(source: str) -> str:
    near = _near(source.lower(), model_names())
    return near or f"; bundled are {', '.join(model_names()[:4])} and {len(model_names()) - 4} more"


def _near(text: str, names: tuple[str, ...]) -> str:
    import difflib  # only when a name was mistyped: it costs start-up time

    near = difflib.get_close_matches(text[:100], names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort 8b before 70b: numbers by value, text by letter."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
