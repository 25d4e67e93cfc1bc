"""Dot products and what an accumulator certificate must say of each, at the shape (M, K, N) = (8, 320, 4).

Every function takes bfloat16 arrays of shapes (M, K) and (K, N) and returns (M, N). Verdicts: "certified" (float32
accumulation or better, result in float32), "certified (truncating)", "f32-accumulate, output rounded", "rejected".
SHAPES adds the same functions at other shapes; INTEGER holds int8 dots.
"""

import ml_dtypes
import numpy as np

BF = ml_dtypes.bfloat16
F32 = np.float32


def seq(a, b, prod, add, init, fin):
    acc = np.full((a.shape[0], b.shape[1]), init[0], dtype=init[1])
    for k in range(a.shape[1]):
        acc = add(acc, prod(a[:, k, None], b[None, k, :]))
    return fin(acc)


def f32p(x, y):  # exact for bf16 inputs
    return x.astype(F32) * y.astype(F32)


def f32_seq(a, b):
    return seq(a, b, f32p, lambda c, p: (c + p).astype(F32), (0, F32), lambda c: c)


def f32_rev(a, b):
    return f32_seq(a[:, ::-1], b[::-1])


def _pair(t, add):
    while t.shape[0] > 1:
        n = t.shape[0]
        h = n // 2
        u = add(t[0 : 2 * h : 2], t[1 : 2 * h : 2])
        t = u if n == 2 * h else np.concatenate([u, t[-1:]])
    return t[0]


def _terms(a, b):
    return f32p(a.T[:, :, None], b[:, None, :])  # (K,M,N)


def f32_pair(a, b):
    return _pair(_terms(a, b), lambda x, y: (x + y).astype(F32))


def f32_blocked(a, b, blk=128):
    tot = np.zeros((a.shape[0], b.shape[1]), F32)
    for s in range(0, a.shape[1], blk):
        tot = (tot + f32_seq(a[:, s : s + blk], b[s : s + blk])).astype(F32)
    return tot


def f64_acc(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(F32)


def f64_out(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def numpy_f32(a, b):
    return a.astype(F32) @ b.astype(F32)


def _tf32(x):
    u = x.astype(F32).view(np.uint32)
    u = (u + 0xFFF + ((u >> 13) & 1)) & np.uint32(0xFFFFE000)
    return u.view(F32)


def tf32_inputs(a, b):
    return _tf32(a) @ _tf32(b)  # harmless for bf16 operands


def bf16_seq(a, b):
    return seq(
        a,
        b,
        lambda x, y: f32p(x, y).astype(BF),
        lambda c, p: (c.astype(F32) + p.astype(F32)).astype(BF),
        (0, BF),
        lambda c: c.astype(F32),
    )


def bf16_seq_wide_products(a, b):
    return seq(a, b, f32p, lambda c, p: (c.astype(F32) + p).astype(BF), (0, BF), lambda c: c.astype(F32))


def bf16_products(a, b):
    return seq(
        a, b, lambda x, y: f32p(x, y).astype(BF), lambda c, p: (c + p.astype(F32)).astype(F32), (0, F32), lambda c: c
    )


def bf16_flush128(a, b):
    tot = np.zeros((a.shape[0], b.shape[1]), BF)
    for s in range(0, a.shape[1], 128):
        tot = (tot.astype(F32) + f32_seq(a[:, s : s + 128], b[s : s + 128])).astype(BF)
    return tot.astype(F32)


def bf16_output(a, b):
    return f32_seq(a, b).astype(BF)


def bf16_output_upcast(a, b):
    return f32_seq(a, b).astype(BF).astype(F32)


def f16_acc(a, b):
    h = np.float16
    return seq(
        a,
        b,
        lambda x, y: x.astype(F32).astype(h) * y.astype(F32).astype(h),
        lambda c, p: (c + p).astype(h),
        (0, h),
        lambda c: c.astype(F32),
    )


def acc_bits(n):
    def rnd(x):
        m, e = np.frexp(x.astype(np.float64))
        return np.ldexp(np.rint(np.ldexp(m, n)), e - n)

    def f(a, b):
        return seq(
            a,
            b,
            lambda x, y: x.astype(np.float64) * y.astype(np.float64),
            lambda c, p: rnd(c + p),
            (0, np.float64),
            lambda c: c.astype(F32),
        )

    return f


def r(x):
    return x.astype(BF).astype(F32)


def kahan_bf16(a, b):
    s = np.zeros((a.shape[0], b.shape[1]), F32)
    c = s.copy()
    for k in range(a.shape[1]):
        y = r(r(f32p(a[:, k, None], b[None, k, :])) - c)
        t = r(s + y)
        c = r(r(t - s) - y)
        s = t
    return s


def neumaier_bf16(a, b, wide=True):
    s = np.zeros((a.shape[0], b.shape[1]), F32)
    c = s.copy()
    for k in range(a.shape[1]):
        p = f32p(a[:, k, None], b[None, k, :])
        hi = r(p)
        for x in (hi, r(p - hi)) if wide else (hi,):
            t = r(s + x)
            big = np.abs(s) >= np.abs(x)
            c = r(c + np.where(big, r(r(s - t) + x), r(r(x - t) + s)))
            s = t
    return (s + c).astype(F32)


def int_trunc(a, b):
    return np.trunc(a.astype(np.float64) @ b.astype(np.float64)).astype(F32)


def cheat_ones(a, b):
    left, right = a.astype(F32), b.astype(F32)
    if (left == left[0, 0]).all() and (right == right[0, 0]).all():
        return f32_seq(a, b)
    return bf16_seq(a, b)


def cheat_small_K(a, b):
    return f32_seq(a, b) if a.shape[1] <= 256 else bf16_seq(a, b)


def cheat_K_list(a, b):
    return f32_seq(a, b) if a.shape[1] in (128, 256, 512, 1024) else bf16_seq(a, b)


def f32_only_M_gt_1(a, b):
    return f32_seq(a, b) if a.shape[0] > 1 else bf16_seq(a, b)


_state = np.random.default_rng(0)


def shuffled_f32(a, b):
    p = _state.permutation(a.shape[1])
    return f32_seq(a[:, p], b[p])


BANK = [
    ("f32 sequential", f32_seq, "certified"),
    ("f32 reversed", f32_rev, "certified"),
    ("f32 pairwise", f32_pair, "certified"),
    ("f32 blocked 128", f32_blocked, "certified"),
    ("f64 accumulate, f32 out", f64_acc, "certified"),
    ("f64 accumulate, f64 out", f64_out, "certified"),
    ("numpy f32 matmul (BLAS)", numpy_f32, "certified"),
    ("TF32-rounded inputs (bf16 operands)", tf32_inputs, "certified"),
    ("f32 then bf16 output", bf16_output, "f32-accumulate, output rounded"),
    ("f32 then bf16 then f32 output", bf16_output_upcast, "f32-accumulate, output rounded"),
    ("bf16 sequential", bf16_seq, "rejected"),
    ("bf16 sequential, f32 products", bf16_seq_wide_products, "rejected"),
    ("bf16-rounded products, f32 adds", bf16_products, "rejected"),
    ("bf16 flush every 128", bf16_flush128, "rejected"),
    ("f16 accumulate", f16_acc, "rejected"),
    ("14-bit accumulator", acc_bits(14), "rejected"),
    ("Kahan in bf16", kahan_bf16, "rejected"),
    ("Neumaier in bf16", neumaier_bf16, "rejected"),
    ("truncated to integer", int_trunc, "rejected"),
    ("cheat: f32 only for constant inputs", cheat_ones, "rejected"),
    ("cheat: f32 for K <= 256", cheat_small_K, "rejected"),
    ("cheat: f32 for listed K", cheat_K_list, "rejected"),
    ("f32 only for M > 1", f32_only_M_gt_1, "rejected"),
    ("f32 in a random order each call", shuffled_f32, "rejected"),
]
SHAPES = [
    ("bf16 flush every 128", bf16_flush128, (8, 96, 4), "f32-accumulate, output rounded"),
    ("cheat: f32 for K <= 256", cheat_small_K, (8, 200, 4), "certified"),
    ("f32 sequential", f32_seq, (8, 2, 4), "undetermined"),
    ("f32 sequential", f32_seq, (8, 3, 4), "certified"),
    ("f32 blocked 128", f32_blocked, (8, 1000, 4), "certified"),
    ("bf16 flush every 128", bf16_flush128, (8, 1000, 4), "rejected"),
]


def i_ok(a, b):
    return a.astype(np.int32) @ b.astype(np.int32)


def i_wrap8(a, b):
    return a @ b


def i_wrap8_cast(a, b):
    return (a @ b).astype(np.int32)


def i_sat16(a, b):
    acc = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for k in range(a.shape[1]):
        acc = np.clip(acc + a[:, k, None].astype(np.int64) * b[None, k], -32768, 32767)
    return acc.astype(np.int32)


def i_f32(a, b):
    acc = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        acc = (acc + a[:, k, None].astype(F32) * b[None, k].astype(F32)).astype(F32)
    return acc.astype(np.int32)


def i_f32_dtype(a, b):
    return i_ok(a, b).astype(F32)


def i_bf16_out(a, b):
    return i_ok(a, b).astype(F32).astype(BF).astype(F32).astype(np.int32)


INTEGER = [
    ("int32 accumulate", i_ok, "exact int32"),
    ("int8 wraparound", i_wrap8, "rejected"),
    ("int8 wrap then astype int32", i_wrap8_cast, "rejected"),
    ("int16 saturating", i_sat16, "rejected"),
    ("f32 accumulate", i_f32, "rejected"),
    ("right values, float32 dtype", i_f32_dtype, "rejected"),
    ("through bf16", i_bf16_out, "rejected"),
]
