"""Reading a Hugging Face ``config.json``: one line for whatever is wrong, a record of every default taken."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tpu_systems_audit.units import InputError, shown

CLASS_DEFAULTS = Path(__file__).with_name("defaults.json")  # of the classes in transformers, with its version
LARGEST_FILE_BYTES = 4 * 2**20
LARGEST_SIZE = 10**9
LARGEST_DEPTH = 10**5  # layers are listed one by one


class Fields:
    """The fields of one configuration, checked as they are read."""

    def __init__(self, config: dict, name: str, prefix: str = "") -> None:
        self.config, self.name, self.prefix = config, name, prefix
        self.defaults: list[str] = []
        self.notes: list[str] = []

    def refuse(self, field: str, problem: str) -> InputError:
        """Make the refusal of a field."""
        return InputError(f"{self.name}: {self.prefix}{field}: {problem}")

    def size(
        self, field: str, default: int | None = None, why: str = "", least: int = 1, most: int = LARGEST_SIZE
    ) -> int:
        """Read a whole number from *least* to *most*; where a default exists, absent or null takes it."""
        value = self.config.get(field)
        if value is None and default is not None:
            self.default(field, default, why)
            return default
        if value is None and (known := self.class_defaults.get(field)) is not None:
            self.default(field, known, self.of_class)
            return known
        if value is None:
            raise self.refuse(field, "is missing, and it has no default; a whole number is right")
        if isinstance(value, str):
            raise self.refuse(field, f"{shown(value)} is text; a whole number without quotes is right, such as 4096")
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(field, f"{shown(value)} is not a whole number; a whole number such as 4096 is right")
        if not least <= value <= most:
            raise self.refuse(field, f"{shown(value)} is out of range; from {least} to {most} is right")
        return value

    def size_or_null(self, field: str, meaning: str) -> int | None:
        """Read a size for which null has a *meaning* of its own, so that absent is not the same."""
        if field not in self.config and self.class_defaults.get(field, 0) is None:
            self.default(field, f"null, {meaning}", self.of_class)
            return None
        if field not in self.config and field not in self.class_defaults:
            raise self.refuse(field, f"is missing, and it has no default; a whole number, or null for {meaning}")
        if field not in self.config:
            return self.size(field)
        return None if self.config[field] is None else self.size(field)

    def either(self, field: str, other: str) -> str:
        """Give the one of two names of a field that is used, the first when neither is."""
        given = [name for name in (field, other) if self.config.get(name) is not None]
        if len(given) == 2 and self.config[field] != self.config[other]:
            told = f"{shown(self.config[field])} is not what {other} says, {shown(self.config[other])}"
            raise self.refuse(field, f"{told}; one of them is right")
        return given[0] if given else field

    @property
    def class_defaults(self) -> dict[str, int | None]:
        """What the architecture's class in transformers gives to fields that a released file leaves out."""
        found: dict[str, int | None] = _class_defaults().get(str(self.config.get("model_type")), {})
        return found

    @property
    def of_class(self) -> str:
        """Where such a default comes from, for whoever reads the list of those taken."""
        return f"the default of {self.config.get('model_type')} in transformers {_class_defaults()['transformers']}"

    def flag(self, field: str, default: bool) -> bool:
        """Read true or false."""
        value = self.config.get(field)
        if value is None:
            self.default(field, str(default).lower(), "")
            return default
        if isinstance(value, str):
            raise self.refuse(field, f"{shown(value)} is text; true or false without quotes is right")
        if not isinstance(value, bool):
            raise self.refuse(field, f"{shown(value)} is neither true nor false")
        return value

    def indices(self, field: str, below: int) -> frozenset[int]:
        """Read a list of layer numbers, each from 0 to below *below*; absent means none."""
        value = self.config.get(field)
        if value is None:
            self.default(field, "[]", "")
            return frozenset()
        if not isinstance(value, list) or not all(type(i) is int and 0 <= i < below for i in value):
            raise self.refuse(field, f"{shown(value)} is no list of layers; numbers from 0 to {below - 1} are right")
        return frozenset(value)

    def layer_types(self, layers: int) -> list[bool] | None:
        """Read which layers slide from ``layer_types``; None where the configuration does not say."""
        value = self.config.get("layer_types")
        if value is None:
            return None
        kinds = ("sliding_attention", "full_attention")
        if not isinstance(value, list) or not all(kind in kinds for kind in value):
            raise self.refuse("layer_types", f"{shown(value)} is no list of {' and '.join(kinds)}")
        if len(value) != layers:
            raise self.refuse("layer_types", f"has {len(value)} entries for {layers} layers; one for each is right")
        return [kind == kinds[0] for kind in value]

    def default(self, field: str, value: object, why: str) -> None:
        """Record a default taken."""
        taken = f"{self.prefix}{field}: absent, taken as {value}"
        self.defaults.append(f"{taken} ({why})" if why else taken)


@cache
def _class_defaults() -> dict:
    return json.loads(CLASS_DEFAULTS.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def read_config(path: Path) -> object:
    """Read a JSON file strictly: keys repeated with another value and oversized files are refused.

    Args:
        path: the file.

    Raises:
        InputError: when it cannot be read as one JSON document; the message names the file.
    """
    if path.is_dir():
        inside = f"name {path / 'config.json'}" if (path / "config.json").is_file() else "name a config.json"
        raise InputError(f"{path}: is a directory; {inside}")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); a readable config.json is right") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise InputError(f"{path}: is larger than {LARGEST_FILE_BYTES} bytes; a config.json is a few thousand")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 at byte {error.start}; a config.json is UTF-8 text") from None
    return _parse(text, str(path))


def _parse(text: str, name: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once(name))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{name}: is not JSON at {where} ({error.msg}); a whole config.json is right") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply; a config.json is nearly flat") from None
    except InputError:
        raise
    except ValueError:  # an integer of thousands of digits
        raise InputError(f"{name}: holds a number that is too long; sizes have a few digits") from None


def _once(name: str) -> Callable[[list[tuple[str, object]]], dict]:
    def build(pairs: list[tuple[str, object]]) -> dict:
        built: dict = {}
        for key, value in pairs:
            if key in built and repr(built[key]) != repr(value):  # 1 and true are equal, but not the same
                raise InputError(f"{name}: {shown(key)} stands in it twice with different values; once is right")
            built[key] = value
        return built

    return build
