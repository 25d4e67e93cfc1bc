"""What one wants to run: a training run or a serving job, each knowing how it is described and varied."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from tpu_systems_audit.models import Model
from tpu_systems_audit.sizing.memory import POLICIES, Policy

DEFAULT_BUDGET = Fraction(4, 5)
DEFAULT_SEQUENCE = 2048
BASES = ("peak", "resident")


@dataclass(frozen=True)
class Training:
    """A training run to plan: a model or a bare count, what it keeps, and the shape of its step."""

    kind: ClassVar = "train"

    model: Model | int
    policy: Policy = POLICIES["mixed-bf16"]
    optimizer: str = "adamw"
    sequence: int = DEFAULT_SEQUENCE
    batch_per_chip: int = 1
    remat: str = "full"
    basis: str = "peak"
    budget: Fraction = DEFAULT_BUDGET

    @property
    def settings(self) -> dict[str, object]:
        """What was asked beside model and budget, by name.

        >>> Training(7 * 10**9).settings["policy"]
        'mixed-bf16'
        """
        names = ("optimizer", "sequence", "batch_per_chip", "remat")
        return {"policy": self.policy.name, **{name: getattr(self, name) for name in names}}

    @property
    def sides(self) -> tuple[str, ...]:
        """The counts that may grow until a slice is full; a bare count's activations are unknown, so it has none."""
        return () if isinstance(self.model, int) else ("batch_per_chip", "sequence")

    def smaller(self) -> Iterator[tuple[str, "Training"]]:
        """Yield changes that make the run smaller, one at a time, each in words and as a run.

        >>> [words for words, run in Training(7 * 10**9, optimizer="sgd").smaller()]
        ['the pure-bf16 policy']
        """
        if self.remat == "none":
            yield "full remat", replace(self, remat="full")
        if self.optimizer in ("adam", "adamw"):
            yield "8-bit Adam", replace(self, optimizer="adam8bit")
        if self.policy.name != "pure-bf16":
            yield "the pure-bf16 policy", replace(self, policy=POLICIES["pure-bf16"])
        if self.batch_per_chip > 1:
            yield "half the batch per chip", replace(self, batch_per_chip=self.batch_per_chip // 2)


@dataclass(frozen=True)
class Serving:
    """A serving job to plan: *batch* sequences of *context* tokens held at once."""

    kind: ClassVar = "serve"
    sides: ClassVar = ("batch", "context")

    model: Model
    context: int
    batch: int
    weights_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    budget: Fraction = DEFAULT_BUDGET

    @property
    def settings(self) -> dict[str, object]:
        """What was asked beside model and budget, by name."""
        return {name: getattr(self, name) for name in ("context", "batch", "weights_dtype", "kv_dtype")}

    def smaller(self) -> Iterator[tuple[str, "Serving"]]:
        """Yield changes that make the job smaller, one at a time, each in words and as a job."""
        if self.weights_dtype in ("fp32", "bf16"):
            yield "int8 weights", replace(self, weights_dtype="int8")
        if self.weights_dtype != "int4":
            yield "int4 weights", replace(self, weights_dtype="int4")
        if self.kv_dtype in ("fp32", "bf16"):
            yield "an int8 cache", replace(self, kv_dtype="int8")
        if self.batch > 1:
            yield "half the batch", replace(self, batch=self.batch // 2)


Job = Training | Serving
