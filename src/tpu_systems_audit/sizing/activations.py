"""An estimate, not a closed form: the activations of one training step, and the margin beside it.

The estimate describes a plain program: parameters sharded over all chips (FSDP), computing in bf16,
attention without a fused kernel, logits and attention scores in fp32. Its margin was calibrated on
compiles of that program (``tests/cases/proofs.json``): no program the compiler refused is said to fit.
Another program has another peak.
"""

from fractions import Fraction
from math import ceil

from tpu_systems_audit.models import Model
from tpu_systems_audit.units import GIB, InputError, shown

REMATS = ("full", "none")

# Of one layer, in values per token: what backward reads of the MLP, and of the residual stream and attention.
MLP_COPIES = 6
HIDDEN_COPIES = 8

MARGIN_BYTES_PER_PARAMETER = Fraction(3, 2)
MARGIN_FIXED_BYTES = GIB // 4


def activation_bytes(model: Model, sequence: int, batch: int, remat: str = "full") -> int:
    """Estimate the activations that one device holds at the peak of a training step, in bytes.

    Args:
        model: the model.
        sequence: tokens per sequence.
        batch: sequences on this device.
        remat: ``full`` keeps each layer's input and recomputes the rest, ``none`` keeps everything.

    Raises:
        InputError: for another *remat*.

    With remat the peak is the larger of one layer's backward pass and the loss, on top of the kept inputs;
    without it, every layer's residuals (its gathered weights among them) live until the loss.
    """
    if remat not in REMATS:
        raise InputError(f"--remat: {shown(remat)} is unknown; one of {' '.join(REMATS)} is right")
    tokens = sequence * batch
    residuals = 2 * tokens * (MLP_COPIES * model.intermediate + HIDDEN_COPIES * model.hidden)
    scores = model.heads * sequence * sequence * batch
    gathered = 2 * model.largest_layer_parameters
    loss = 2 * 4 * tokens * model.vocab  # fp32 logits and their gradient
    if remat == "none":
        return model.layers * (residuals + (4 + 2) * scores + gathered) + loss
    kept = 2 * model.layers * tokens * model.hidden
    layer = residuals + (4 + 4) * scores + 2 * gathered  # scores and weights, each with its gradient
    return kept + max(layer, loss)


def margin_bytes(parameters: int, devices: int) -> int:
    """Bytes to leave free on each device beside state and activations, for what no closed form sees.

    Args:
        parameters: of the model.
        devices: that share them.

    >>> margin_bytes(8 * 10**9, 8) / 2**30
    1.6469838619232178
    """
    return ceil(MARGIN_BYTES_PER_PARAMETER * parameters / devices) + MARGIN_FIXED_BYTES
