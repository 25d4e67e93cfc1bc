"""The certificate of an integer dot product: int8 codes in, int32 sums out, nothing rounded, nothing wrapped.

Float32 sums of int8 products are exact up to a K of about a thousand; what adds in float32 shows only beyond it.
So the product is asked at the shape shipped, at M = 1, and at one longer K.
"""

from collections.abc import Iterator

import numpy as np

from tpu_systems_audit.precision.bounds import float32_k_limit, int32_k_limit
from tpu_systems_audit.precision.probe import REJECTED, Certificate, Dot, Refused, ask
from tpu_systems_audit.precision.rounding import LARGEST_CODE
from tpu_systems_audit.precision.rows import Probe, Shape
from tpu_systems_audit.units import InputError

EXACT = "exact int32"
LONG = 8 * float32_k_limit() + 1  # odd, and long enough that drawn sums pass 2**24 in every draw of one sign


def certify_int8(dot: Dot, shape: Shape = (8, 320, 4), seed: int = 0) -> Certificate:
    """Certify that an int8 dot product adds exactly in int32, at a shape, at M = 1 and at a longer K.

    Args:
        dot: takes int8 arrays of shapes (M, K) and (K, N), gives int32 of shape (M, N).
        shape: M, K, N.
        seed: draws the codes.

    Raises:
        InputError: when *dot* raises, or K is so long that int32 sums can wrap.

    >>> certify_int8(lambda x, w: x.astype("int32") @ w.astype("int32")).verdict
    'exact int32'
    """
    m, length, n = shape
    if length > int32_k_limit():
        raise InputError(f"K: {length} is so long that int32 sums can wrap; at most {int32_k_limit()} is right")
    for each in dict.fromkeys([shape, (1, length, n), (m, max(length, LONG), n)]):
        draw = np.random.default_rng(seed)
        try:
            for name, call in _calls(each, draw):
                answer = ask(dot, call)
                if answer.dtype != np.int32:
                    raise Refused(f"the result is {answer.dtype}, where int32 is right")
                if (answer.astype(np.int64) != call.exact).any():
                    raise Refused(f"{name}: the sums are not exact")
        except Refused as reason:
            why = f"at M, K, N = {', '.join(map(str, each))}: {reason}"
            return Certificate(REJECTED, None, "unknown", shape, (why,))
    longest = f"exact up to K = {max(length, LONG)}, with every product 127 * 127 and with drawn codes"
    return Certificate(EXACT, 32, "exactly, whatever the order", shape, (longest,))


def _calls(shape: Shape, draw: np.random.Generator) -> Iterator[tuple[str, Probe]]:
    m, length, n = shape
    most = np.full((m, length), LARGEST_CODE), np.full((length, n), LARGEST_CODE)
    yield "all codes 127", _call(*most)
    yield "all codes 127 against -127", _call(most[0], -most[1])
    for least in (-LARGEST_CODE, 0, LARGEST_CODE // 2):
        sizes = (m, length), (length, n)
        yield "drawn codes", _call(*(draw.integers(least, LARGEST_CODE + 1, size) for size in sizes))


def _call(left: np.ndarray, right: np.ndarray) -> Probe:
    exact = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float64)  # whole numbers below 2**53
    return Probe(left.astype(np.int8), right.astype(np.int8), exact)
