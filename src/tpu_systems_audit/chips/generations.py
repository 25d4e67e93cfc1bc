"""TPU generations: what one chip holds and does, and the slices one can order.

Every figure stands in ``generations.toml`` with its source and date; this module only reads it.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from tpu_systems_audit.chips.slices import Slice, slices
from tpu_systems_audit.units import GIB, InputError, shown

DATA = Path(__file__).with_name("generations.toml")

PEAK_DTYPES = ("bf16", "int8", "fp8")


@dataclass(frozen=True)
class Figure:
    """One published number with its source, its date, and what others publish for the same thing."""

    value: Fraction
    source: str
    date: str
    others: tuple[tuple[Fraction, str, str], ...]


@dataclass(frozen=True)
class Generation:
    """One TPU generation; figures are per chip unless their name says per device."""

    name: str
    product: str
    device_kind: str
    aliases: tuple[str, ...]
    devices_per_chip: int
    figures: dict[str, Figure]
    slices: tuple[Slice, ...]
    ordered_through: str
    note: str

    @property
    def hbm_gib(self) -> int:
        """Nominal HBM capacity of a chip, in GiB."""
        return int(self.figures["hbm_gib"].value)

    @property
    def hbm_bytes(self) -> int:
        """Nominal HBM capacity of a chip, in bytes."""
        return self.hbm_gib * GIB

    @property
    def usable_hbm_gib_per_device(self) -> Fraction:
        """HBM that the compiler offers a program on one JAX device, in GiB."""
        return self.figures["usable_hbm_gib_per_device"].value

    @property
    def usable_hbm_bytes(self) -> Fraction:
        """HBM that the compiler offers programs on one chip, all its devices together, in bytes."""
        return self.usable_hbm_gib_per_device * self.devices_per_chip * GIB

    @property
    def hbm_gb_per_s(self) -> Fraction:
        """HBM bandwidth of a chip, in decimal GB/s."""
        return self.figures["hbm_gb_per_s"].value

    def peak_tflops(self, dtype: str) -> Fraction | None:
        """Peak rate of a chip at *dtype*, in TFLOP/s (TOP/s for int8); None where the chip has no such path.

        >>> generation("tpu7x").peak_tflops("int8") is None
        True
        """
        figure = self.figures.get(f"peak_tflops.{dtype}")
        return figure.value if figure else None


@cache
def sources() -> dict[str, dict[str, str]]:
    """Where the figures come from: key to title, url and date (ISO)."""
    return {key: {**entry, "date": entry["date"].isoformat()} for key, entry in _data()["sources"].items()}


@cache
def generations() -> tuple[Generation, ...]:
    """All generations, oldest first.

    >>> [g.name for g in generations()]
    ['v2', 'v3', 'v4', 'v5e', 'v5p', 'v6e', 'tpu7x']
    """
    return tuple(_generation(entry) for entry in _data()["generation"])


def generation(name: str) -> Generation:
    """Find a generation by its name, an alias or JAX's ``device_kind``, in any case.

    Args:
        name: such as ``v5e``, ``v5litepod``, ``Trillium`` or ``TPU v6 lite``.

    Raises:
        InputError: when no generation is called that; the message suggests the nearest name.

    >>> generation("Trillium").name
    'v6e'
    """
    known = _names()
    key = " ".join(name.lower().split())
    if key in known:
        return known[key]
    raise InputError(f"generation: {shown(name)} is unknown{_suggestion(key)}; one of {_listing()} is right")


def parse_slice(text: str) -> tuple[Generation, Slice]:
    """Read a slice written as ``v5e:4x4`` or by the accelerator type it is ordered by, such as ``v5litepod-16``.

    Args:
        text: generation and topology, or accelerator type; any name of the generation may stand before ":" or "-".

    Raises:
        InputError: when there is no such slice; the message names the nearest legal ones.

    >>> parse_slice("v5p-16")[1].chips
    8
    >>> parse_slice("v5e:4x4")[1].accelerator_type, parse_slice("v5e-16")[1].accelerator_type
    ('v5litepod-16', 'v5litepod-16')
    """
    name, colon, topology = text.strip().partition(":")
    if colon:
        chip = generation(name)
        found = [s for s in chip.slices if _sides(s.topology) == _sides(topology)]
        if not found:
            legal = ", ".join(s.topology for s in chip.slices[:14])
            raise InputError(f"--slice: {chip.name} has no topology {shown(topology)}; one of {legal} is right")
        return chip, found[0]
    key = text.strip().lower()
    head, _, count = key.rpartition("-")
    called = _names().get(head)
    for each in generations():
        for candidate in each.slices:
            alias = each is called and candidate.accelerator_type.endswith(f"-{count}")
            if alias or candidate.accelerator_type == key:
                return each, candidate
    raise InputError(f"--slice: {shown(text)} is no slice one can order{_slice_hint(key)}")


def _slice_hint(key: str) -> str:
    """What would be right instead of the accelerator type *key*."""
    head, dash, count = key.rpartition("-")
    if not dash or head not in _names() or not (count.isascii() and count.isdecimal()):
        return "; write generation:topology such as v5e:4x4, or an accelerator type such as v5litepod-16"
    chip = _names()[head]
    types = dict.fromkeys(s.accelerator_type for s in chip.slices)
    nearest = sorted(types, key=lambda kind: abs(int(kind.rpartition("-")[2]) - int(count[:9])))[:3]
    return f"; {chip.name} slices are called {', '.join(nearest)} and the like"


@cache
def _data() -> dict:
    import tomllib  # commands that name no chip do without it

    return tomllib.loads(DATA.read_text(encoding="utf-8"))


@cache
def _names() -> dict[str, Generation]:
    """Every lower-case name a generation answers to."""
    return {label.lower(): chip for chip in generations() for label in (chip.name, chip.device_kind, *chip.aliases)}


def _listing() -> str:
    return " ".join(chip.name for chip in generations())


def _suggestion(key: str) -> str:
    import difflib  # only when a name was mistyped: it costs start-up time

    canonical = [chip.name for chip in generations()]
    near = difflib.get_close_matches(key, canonical, 1) or difflib.get_close_matches(key, _names(), 1)
    return f", did you mean {_names()[near[0]].name}?" if near else ""


def _generation(entry: dict) -> Generation:
    figures = {name: _figure(entry[name]) for name in _figure_names(entry)}
    figures |= {f"peak_tflops.{dtype}": _figure(figure) for dtype, figure in entry["peak_tflops"].items()}
    return Generation(
        name=entry["name"],
        product=entry["product"],
        device_kind=entry["device_kind"],
        aliases=tuple(entry["aliases"]),
        devices_per_chip=entry["devices_per_chip"],
        figures=figures,
        slices=slices(entry),
        ordered_through=entry["ordered_through"],
        note=entry.get("note", ""),
    )


def _figure_names(entry: dict) -> list[str]:
    return [name for name, value in entry.items() if isinstance(value, dict) and "value" in value]


def _figure(entry: dict) -> Figure:
    others = tuple((_exact(o["value"]), o["source"], o.get("note", "")) for o in entry.get("others", []))
    return Figure(_exact(entry["value"]), entry["source"], sources()[entry["source"]]["date"], others)


def _exact(value: float) -> Fraction:
    """The decimal number as it is written in the file: 15.75 is 63/4, not its binary neighbour."""
    return Fraction(str(value))


def _sides(topology: str) -> list[str]:
    return sorted(topology.strip().lower().split("x"))
