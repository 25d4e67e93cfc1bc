"""Ed25519 verification written from RFC 8032 alone, to check signatures by another hand than the package's library."""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_MINUS_1 = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2 % P
    return (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P


def times(count: int, point: Point) -> Point:
    total: Point = (0, 1)
    while count:
        if count & 1:
            total = add(total, point)
        point = add(point, point)
        count >>= 1
    return total


def decompress(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * SQRT_MINUS_1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return (P - x if x & 1 != sign else x), y


BASE = decompress((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verifies(public: bytes, message: bytes, signature: bytes) -> bool:
    a, r, s = decompress(public), decompress(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or BASE is None or s >= L or len(signature) != 64:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return times(s, BASE) == add(r, times(k, a))
