"""Large traces to measure on: one full of device operations, one full of Python frames."""

import random
from pathlib import Path

from tests.traces.trace_writer import Plane, blob, build, num, varint

NAMES = 3000
STEPS = [(1 + number * 9.05, 9.0) for number in range(50)]
HEAD = {"chip": "TPU v5 Lite", "steps_line": True, "no_ops": True, "steps": STEPS}


def operations(path: Path, megabytes: float) -> None:
    """Write a clean trace whose weight is in the operations of one device, each with three stats."""
    plane = Plane("/device:TPU:0 SparseCore 0", 9)
    keys = [plane.names.setdefault(f"%fusion.{k} = bf16[8,128] fusion(...)", k + 1) for k in range(NAMES)]
    plane.stat_names = {name: number for number, name in enumerate(("flops", "bytes_accessed", "model_flops"), 1)}
    stats = [
        b"".join(blob(4, num(1, q) + num(4, v)) for q, v in ((1, 2147483648 + k), (2, 8388608 + k), (3, 2147483648)))
        for k in range(NAMES)
    ]
    each = int(megabytes * 1e6 / 46) // len(STEPS)
    length_ps = int(9e9 / each)
    out = [num(1, 3) + blob(2, "XLA Ops")]
    for start, _ in STEPS:
        for k in range(each):
            body = num(1, keys[k % NAMES]) + b"\x10" + varint(int(start * 1e9) + k * length_ps)
            out.append(blob(4, body + num(3, int(length_ps * 0.9)) + stats[k % NAMES]))
    plane.name = "/device:TPU:0"
    plane.lines = [b"".join(out)]
    _write(path, plane)


def frames(path: Path, megabytes: float, count: int) -> None:
    """Write a clean trace with *count* Python frames on the host, filled up with operations to the size asked for."""
    operations(path, max(0.1, megabytes - count * 17.5e-6))
    draw = random.Random(0)
    plane = Plane("/host:CPU", 51)
    keys = [plane.names.setdefault(f"$loop.py:{k} call", k + 1) for k in range(NAMES)]
    out = [num(1, 7) + blob(2, "python")]
    apart_ps = int(450e9 / count)
    for number in range(count):
        duration = int(10 ** draw.uniform(4, 9.3))
        body = num(1, keys[draw.randrange(NAMES)]) + num(2, 10**9 + number * apart_ps) + num(3, duration)
        out.append(blob(4, body))
    plane.lines = [b"".join(out)]
    with path.open("ab") as file:
        file.write(plane.bytes())


def _write(path: Path, plane: Plane) -> None:
    """Put the operations on the plane of the device that runs the steps."""
    steps = [(f"{number}", start, length) for number, (start, length) in enumerate(STEPS)]
    weight = plane.lines
    plane.lines = []
    plane.line("Steps", steps, number=1)
    plane.line("XLA Modules", [("jit_step(1)", start, length) for start, length in STEPS], number=2)
    plane.lines += weight
    path.write_bytes(plane.bytes() + build(HEAD | {"devices": 0, "cpu_ops": False}))
