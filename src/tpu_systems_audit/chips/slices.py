"""The slices of a generation that one can order: their names, topologies, chips, hosts and devices."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod

CHIPS_PER_HOST = 4  # of a slice larger than one host, also where one host alone can hold eight


@dataclass(frozen=True)
class Slice:
    """A set of chips that is sold together, with the name it is ordered by; *note* says what the name leaves open."""

    generation: str
    accelerator_type: str
    topology: str
    chips: int
    hosts: int
    devices: int
    note: str = ""


def slices(entry: dict) -> tuple[Slice, ...]:
    """List the slices of a generation, smallest first; of those of one size the most balanced stands first.

    Args:
        entry: of the generation in ``generations.toml``.

    >>> entry = {"name": "v0", "prefix": "v0", "suffix_counts": "chips", "cores_per_chip": 1, "devices_per_chip": 1,
    ...          "single_host_chips": 4, "slices": ["2x2"], "cube": {"side": 4, "most_chips": 128}}
    >>> [(each.accelerator_type, each.topology) for each in slices(entry)]
    [('v0-4', '2x2'), ('v0-64', '4x4x4'), ('v0-128', '4x4x8')]
    """
    boxes = [tuple(map(int, topology.split("x"))) for topology in entry["slices"]]
    boxes += _cubes(**entry["cube"]) if "cube" in entry else []
    found: list[Slice] = []
    for _, group in groupby(boxes, prod):
        found += _of_one_size(entry, ["x".join(map(str, box)) for box in group])
    return tuple(found)


def _cubes(side: int, most_chips: int, longest: int = 10**9, one_per_size: bool = False) -> list[tuple[int, ...]]:
    """Boxes whose sides are multiples of *side*, the most balanced of a size first, or alone."""
    boxes = sorted(_boxes(side, most_chips, longest), key=lambda box: (prod(box), box[2] - box[0]))
    return [next(group) for _, group in groupby(boxes, prod)] if one_per_size else boxes


def _boxes(side: int, most_chips: int, longest: int) -> Iterator[tuple[int, ...]]:
    for a in range(side, most_chips // side**2 + 1, side):
        for b in range(a, most_chips // (a * a) + 1, side):
            yield from ((a, b, c) for c in range(b, min(longest, most_chips // (a * b)) + 1, side))


def _of_one_size(entry: dict, topologies: list[str]) -> Iterator[Slice]:
    chips = prod(map(int, topologies[0].split("x")))
    count = chips * entry["cores_per_chip"] if entry["suffix_counts"] == "cores" else chips
    name = f"{entry['prefix']}-{count}"
    hosts = 1 if chips <= entry["single_host_chips"] else chips // CHIPS_PER_HOST
    notes = entry.get("slice_notes", {})
    left_open = f"{name} leaves the topology open: {', '.join(topologies[:-1])} or {topologies[-1]}"
    for topology in topologies:
        note = notes.get(topology, left_open if len(topologies) > 1 else "")
        yield Slice(entry["name"], name, topology, chips, hosts, chips * entry["devices_per_chip"], note)
