"""A model as arrays and caches: what all counting starts from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Leaf:
    """One parameter array, and how many of the same there are; a matrix is (contracted, output)."""

    name: str
    part: str
    shape: tuple[int, ...]
    count: int
    kind: str

    @property
    def parameters(self) -> int:
        """Parameters in all arrays of this leaf.

        >>> Leaf("mlp.up", "mlp", (4, 16), 2, "matrix").parameters
        128
        """
        size = self.count
        for side in self.shape:
            size *= side
        return size


@dataclass(frozen=True)
class Cache:
    """Layers with the same KV cache: values and int8 scales per token and layer, and the window in tokens."""

    layers: int
    values_per_token: int
    scales_per_token: int
    window: int | None


@dataclass(frozen=True)
class Model:
    """A model's shapes.

    ``intermediate`` is the inner width of the MLPs that one token passes through, ``positions`` the longest
    context that the configuration states, None where it states none.
    """

    name: str
    model_type: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    leaves: tuple[Leaf, ...]
    caches: tuple[Cache, ...]
    defaults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    largest_layer_parameters: int = 0
    experts: int = 0
    experts_per_token: int = 0
    positions: int | None = None

    @property
    def parameters(self) -> int:
        """The exact number of parameters."""
        return sum(leaf.parameters for leaf in self.leaves)

    @property
    def parts(self) -> dict[str, int]:
        """Parameters by part of the model."""
        parts: dict[str, int] = {}
        for leaf in self.leaves:
            parts[leaf.part] = parts.get(leaf.part, 0) + leaf.parameters
        return parts

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes through; of the routed experts, only those it is sent to."""
        if not self.experts:
            return self.parameters
        routed = self.parts["experts"]
        return self.parameters - routed + routed * self.experts_per_token // self.experts

    def beyond_positions(self, context: int) -> tuple[str, ...]:
        """Say when *context* tokens are more than the model has positions for."""
        if self.positions is None or context <= self.positions:
            return ()
        return (f"a context of {context:,} is beyond the {self.positions:,} positions of the model",)

    @property
    def kv_values_per_token(self) -> int:
        """Values that the first token adds to the cache, over all layers."""
        return sum(run.layers * run.values_per_token for run in self.caches)
