"""How wrong can it get: BF16 and INT8 products, bounds on their error, and what a dot product adds in.

Importing it imports numpy and ml_dtypes; JAX is imported when a product is computed.
"""

from tpu_systems_audit.precision.bounds import (
    bf16_accumulation_bound,
    bf16_accumulation_factor,
    bf16_bound,
    float32_bound,
    float32_k_limit,
    int8_bound,
    int32_k_limit,
    likely_bf16_accumulation_factor,
    reference_bound,
    rescale_bound,
)
from tpu_systems_audit.precision.integer import EXACT, certify_int8
from tpu_systems_audit.precision.probe import (
    CERTIFIED,
    REJECTED,
    ROUNDED,
    TRUNCATING,
    UNDETERMINED,
    Certificate,
    certify,
)
from tpu_systems_audit.precision.rounding import (
    Difference,
    Quantized,
    bf16_accumulated_matmul,
    bf16_matmul,
    bf16_round,
    difference,
    exact_product,
    int8_dot,
    int8_matmul,
    quantize_int8,
    quantized_operands,
)
from tpu_systems_audit.precision.summary import METHODS, MethodError, Summary, drawn, method_error, summarize

__all__ = [
    "CERTIFIED",
    "EXACT",
    "METHODS",
    "REJECTED",
    "ROUNDED",
    "TRUNCATING",
    "UNDETERMINED",
    "Certificate",
    "Difference",
    "MethodError",
    "Quantized",
    "Summary",
    "bf16_accumulated_matmul",
    "bf16_accumulation_bound",
    "bf16_accumulation_factor",
    "bf16_bound",
    "bf16_matmul",
    "bf16_round",
    "certify",
    "certify_int8",
    "difference",
    "drawn",
    "exact_product",
    "float32_bound",
    "float32_k_limit",
    "int8_bound",
    "int8_dot",
    "int8_matmul",
    "int32_k_limit",
    "likely_bf16_accumulation_factor",
    "method_error",
    "quantize_int8",
    "quantized_operands",
    "reference_bound",
    "rescale_bound",
    "summarize",
]
