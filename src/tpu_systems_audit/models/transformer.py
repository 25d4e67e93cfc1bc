"""A transformer from its configuration, by name or by path: the exact count, nothing guessed silently."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from tpu_systems_audit.models.config import Fields, read_config
from tpu_systems_audit.models.families import build, supported
from tpu_systems_audit.models.shapes import Model
from tpu_systems_audit.units import InputError, shown

# What some files say of the language model beside its fields instead of in them.
BESIDE = ("tie_word_embeddings",)
# An address, or owner and name on a hub: text that people give in good faith, and that is no path.
ELSEWHERE = re.compile(r"https?://\S+|[A-Za-z0-9][\w.-]*/[\w.-]*(?<!\.json)")
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
        raise InputError(f"MODEL: {shown(source)} {_not_there(source)}")
    return from_config(read_config(path), shown(source)[1:-1])


@cache
def _bundled(name: str) -> Model:
    # Their defaults are ours to take: whoever names a bundled model can do nothing about them.
    return replace(from_config(read_config(MODELS / f"{name}.json"), name), defaults=())


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
        beside = {key: config[key] for key in BESIDE if config.get(key) is not None}
        fields = Fields(beside | text, name, "text_config.")
        whole = shown(config.get("model_type"))
        notes = [f"a multimodal configuration ({whole}): answered for its language model only"]
    kind = fields.config.get("model_type")
    if kind not in supported():
        problem = "is missing" if kind is None else f"{shown(kind)} is not supported{_slip(str(kind), supported())}"
        raise fields.refuse("model_type", f"{problem}; one of {' '.join(supported())} is right")
    return build(fields, tuple(notes))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a null byte
        return False


def _not_there(source: str) -> str:
    """Say what a name that is no model here may have meant."""
    if ELSEWHERE.fullmatch(source):
        return "is not here, and nothing is fetched; give a bundled name, or the path of its config.json"
    import difflib  # only when a name was mistyped: it costs start-up time

    near = difflib.get_close_matches(source.lower()[:100], model_names(), n=1)
    bundled = f"; bundled are {', '.join(model_names()[:4])} and {len(model_names()) - 4} more"
    return f"is neither a bundled model nor a file{f'; did you mean {near[0]}?' if near else bundled}"


def _slip(text: str, names: tuple[str, ...]) -> str:
    """Suggest a name that is one slip of the hand away; a name with other digits is another architecture."""
    found = [name for name in names if _one_slip(text.lower().replace("-", "_"), name)]
    return f"; did you mean {found[0]}?" if found else ""


def _one_slip(text: str, name: str) -> bool:
    """Whether one letter was left out, added, changed or swapped with the next.

    >>> _one_slip("lama", "llama"), _one_slip("llama4", "llama"), _one_slip("mitxral", "mixtral")
    (True, False, True)
    """
    if re.sub(r"\D", "", text) != re.sub(r"\D", "", name) or abs(len(text) - len(name)) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(text, name, strict=False)) if a != b), min(len(text), len(name)))
    rest, other = text[start:], name[start:]
    swapped = rest[:2] == other[:2][::-1] and rest[2:] == other[2:]
    return swapped or rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort 8b before 70b: numbers by value, text by letter."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
