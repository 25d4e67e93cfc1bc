"""Write traces (XSpace bytes, ``*.xplane.pb``) from a description, with the standard library alone.

Times in descriptions are milliseconds from the start of the profile.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Event = tuple  # (name, start_ms, duration_ms), then perhaps {stat: value}
Description = dict
START_NS = 1_790_000_000_000_000_000
PEAK_TFLOPS = {"TPU v4": 275.0, "TPU v5 Lite": 197.0, "TPU v5": 459.0, "TPU v6 Lite": 918.0, "TPU7x": 1153.5}
PROGRAM = "jit_step(8123456789012345678)"
OPERATIONS = (
    ("%fusion.1 = bf16[1024,1024]{1,0:T(8,128)(2,1)} fusion(...)", 0.02, 0.6),
    ("%convolution.2 = bf16[1024,1024] convolution(...)", 0.63, 0.3),
)


def varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def num(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value) if value else b""  # zeros are left out


def blob(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def xstat(key: int, value: float | str | bytes) -> bytes:
    start = num(1, key)
    if isinstance(value, float):
        return start + varint(2 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, bytes | str):
        return start + blob(6 if isinstance(value, bytes) else 5, value)
    return start + varint((3 if value > 1 << 60 else 4) << 3) + varint(int(value))


class Plane:
    """Collects lines; names and stats get numbers in the order in which they appear."""

    def __init__(self, name: str, number: int = 0, stats: Iterable = ()) -> None:
        self.name, self.number, self.stats = name, number, dict(stats)
        self.lines: list[bytes] = []
        self.names: dict[str, int] = {}
        self.stat_names: dict[str, int] = {}

    def line(self, name: str, events: Iterable[Event], stamp: int = 0, number: int | None = None) -> None:
        out = [num(1, len(self.lines) + 1 if number is None else number), blob(2, name), num(3, stamp)]
        for event, start, duration, *stats in events:
            key = self.names.setdefault(event, len(self.names) + 1)
            body = num(1, key) + num(2, round(start * 1e9)) + num(3, round(duration * 1e9))
            for stat, value in (stats[0] if stats else {}).items():
                body += blob(4, xstat(self._stat(stat), value))
            out.append(blob(4, body))
        self.lines.append(b"".join(out))

    def bytes(self) -> bytes:
        stats = b"".join(blob(6, xstat(self._stat(stat), value)) for stat, value in self.stats.items())
        names = b"".join(_entry(4, key, name) for name, key in self.names.items())
        stat_names = b"".join(_entry(5, key, name) for name, key in self.stat_names.items())
        lines = b"".join(blob(3, line) for line in self.lines)
        return blob(1, num(1, self.number) + blob(2, self.name) + lines + names + stat_names + stats)

    def _stat(self, name: str) -> int:
        return self.stat_names.setdefault(name, len(self.stat_names) + 1)


def _entry(field: int, key: int, name: str) -> bytes:
    return blob(field, num(1, key) + blob(2, num(1, key) + blob(2, name)))


# A trace from a description, as libtpu and JAX write it


def steps_of(case: Description) -> list[tuple[float, float]]:
    """``[[start, ms]…]`` or ``{first, n, ms, gap}``."""
    steps = case.get("steps", {})
    if isinstance(steps, list):
        return [tuple(step) for step in steps]
    first, count = steps.get("first", 1.0), steps.get("n", 5)
    duration, gap = steps.get("ms", 9.0), steps.get("gap", 0.05)
    return [(first + at * (duration + gap), duration) for at in range(count)]


def build(case: Description, host: str = "host-0") -> bytes:
    steps = steps_of(case)
    special = {each["n"]: each for each in case.get("device", [])}
    planes = []
    for number in range(case.get("devices", 1)):
        own = special.get(number, {})
        if not own.get("missing"):
            mine = steps[: own["keep"]] if "keep" in own else steps
            late, slower = own.get("late", 0), own.get("slower", 1)
            planes.append(_tpu(case, number, [(at + late, ms * slower) for at, ms in mine], own))
    planes += [_gpu(number, steps) for number in range(case.get("gpus", 0))]
    for each in case.get("plane", []):
        plane = Plane(each["name"], each.get("id", 90), each.get("stats", {}))
        for line in each.get("line", []):
            plane.line(line["name"], [tuple(event) for event in line.get("events", [])], line.get("stamp", 0))
        planes.append(plane)
    if case.get("host_plane", True):
        planes.append(_host(case, steps))
    ends = [at + ms for at, ms in steps] + [each["at"] + each["ms"] for each in case.get("host", [])] + [1.0]
    environment = case.get("env", {})
    if environment.get("plane", True):
        planes.append(_environment(environment, max(ends) + 2))
    if case.get("metadata", True):
        metadata = Plane("/host:metadata", stats={"jax_version": "0.12.0.1", "jaxlib_version": "0.12.0.1"})
        metadata.names[PROGRAM] = 1
        planes.append(metadata)
    out = b"".join(plane.bytes() for plane in planes)
    out += b"".join(blob(2, each) for each in case.get("errors", []))
    out += b"".join(blob(3, each) for each in case.get("warnings", []))
    return out + (blob(4, host) if case.get("hostname", True) else b"")


def _tpu(case: Description, number: int, steps: Sequence[tuple[float, float]], own: Description) -> Plane:
    """One TensorCore's plane: programs and operations; a line of steps only when asked for."""
    kind = case.get("chip", "TPU v5 Lite")
    stats = {
        "device_type_string": kind,
        "peak_teraflops_per_second": PEAK_TFLOPS.get(kind, 100.0),
        "peak_hbm_bw_gigabytes_per_second": 819.0,
        "has_megacore": int(kind == "TPU v4"),
        "has_merged_vmem": 1,
    }
    plane = Plane(own.get("name", f"/device:TPU:{number}"), own.get("id", number + 2), stats)
    stamp = own.get("stamp", case.get("stamp", 0))
    order: Callable = (lambda events: events[::-1]) if case.get("unsorted") else (lambda events: events)
    if case.get("steps_line"):
        durations = case.get("steps_line_ms")
        marked = [(str(i), at, durations[i] if durations else ms) for i, (at, ms) in enumerate(steps)]
        plane.line(case.get("steps_line_name", "Steps"), order(marked), stamp, 1)
    runs = _runs(case, steps)
    if case.get("modules_line", True) and case.get("split_lines"):  # two lines of one id are one timeline
        half = len(runs) // 2
        cut_ns = int(runs[half][1] * 1e6)
        plane.line("XLA Modules", runs[:half], stamp, 2)
        later = [(name, at - cut_ns / 1e6, *rest) for name, at, *rest in runs[half:]]
        plane.line("XLA Modules", later, stamp + cut_ns, 2)
    elif case.get("modules_line", True):
        plane.line("XLA Modules", order(runs), stamp, 2)
    if not case.get("no_ops"):
        operations = [
            (name, at + ms * a, ms * b, {"hlo_category": "convolution", "flops": 2147483648})
            for at, ms in steps
            for name, a, b in OPERATIONS
        ]
        plane.line("XLA Ops", order(operations), stamp, 3)
        plane.line("Async XLA Ops", [("copy-start.4", at + 0.01, ms * 0.2) for at, ms in steps], stamp, 4)
    if case.get("dropped"):
        plane.line("XLA TraceMe", [("Trace Buffers Dropped", steps[-1][0], 0.0)], stamp, 6)
    return plane


def _runs(case: Description, steps: Sequence[tuple[float, float]]) -> list[Event]:
    """Each step's programs: its own, several in a row, and helpers after it."""
    program = case.get("program", PROGRAM)
    others = {int(at): name for at, name in case.get("programs", {}).items()}
    runs: list[Event] = []
    for number, (at, ms) in enumerate(steps):
        if case.get("per_step_programs"):
            start = at
            for name, part in case["per_step_programs"]:
                runs.append((name, start, ms * part, {"run_id": number + 101, "program_id": zlib.crc32(name.encode())}))
                start += ms * part
        else:
            stats = {"run_id": number + 101, "program_id": 8123456789012345678}
            runs.append((others.get(number, program), at, ms, stats))
        helpers = case.get("small_programs", [])
        runs += [(name, at + ms + 0.001, length, {"run_id": number + 5101}) for name, length in helpers]
    return runs


def _gpu(number: int, steps: Sequence[tuple[float, float]]) -> Plane:
    plane = Plane(f"/device:GPU:{number}", number, {"device_type_string": "Nvidia GPU", "device_vendor": "Nvidia"})
    plane.line("Stream #13(Compute)", [("ampere_gemm", at, ms) for at, ms in steps])
    plane.line("XLA Modules", [("jit_step(1)", at, ms) for at, ms in steps])
    return plane


def _host(case: Description, steps: Sequence[tuple[float, float]]) -> Plane:
    on_device = case.get("devices", 1)
    main, shift = case.get("main_thread", "python"), case.get("host_shift", 0)
    threads: dict[str, list[Event]] = {}
    annotated = steps
    if "annotations" in case:
        annotated = [(steps[0][0] + number * 9.05, 9.0) for number in range(case["annotations"])]
    for number, (at, ms) in enumerate(annotated if case.get("annotate", True) else ()):
        execute = "PjRtCApiLoadedExecutable::Execute" if on_device else (
            "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
        )  # fmt: skip
        threads.setdefault(main, []).extend(
            [
                (case.get("step_name", "train"), at - 0.05 + shift, ms + 0.04, {"_r": 1, "step_num": number}),
                ("PjitFunction(step)", at - 0.045 + shift, 0.03),
                (execute, at - 0.04 + shift, 0.02),
            ]
        )
        if not on_device and not case.get("gpus") and case.get("cpu_ops", True):
            stats = {"hlo_op": "ynn_fusion", "hlo_module": "jit_step", "run_id": 7 + number, "device_ordinal": 0}
            threads.setdefault("tf_XLAExecute/-77", []).append(("ynn_fusion", at + 0.1, ms * 0.8, stats))
    if case.get("dispatch"):  # a warmed loop without annotations
        threads.setdefault(main, []).extend(("PjitFunction(step)", at - 0.04 + shift, 0.03) for at, _ in steps)
    for each in case.get("host", []):
        event = (each["name"], each["at"] + shift, each["ms"], each.get("stats", {}))
        threads.setdefault(each.get("thread", main), []).append(event)
    for number in range(case.get("noise_threads", 2 if on_device else 0)):
        events = [("tpu::System::Execute", at + 0.01, 0.2) for at, _ in steps]
        threads.setdefault(f"pjrt-tpu-tasks/{900 + number}", []).extend(events)
    plane = Plane("/host:CPU", 50, {"process_id": 4242})
    for thread, events in threads.items():
        plane.line(thread, events, case.get("host_stamp", case.get("stamp", 0)))
    return plane


def _environment(environment: Description, length_ms: float) -> Plane:
    options = num(1, 1) + num(2, environment.get("level", 2)) + num(3, environment.get("device", 1))
    options += num(4, environment.get("python", 0)) + num(5, 1) + num(7, 1)
    start = environment.get("start_ns", START_NS)
    stop = start + int(environment.get("stop_ms", length_ms) * 1e6)
    stats: dict = {"profile_start_time": start, "profile_stop_time": stop}
    return Plane(
        "Task Environment", stats=stats | ({"profile_options": options} if environment.get("options", True) else {})
    )


def damage(data: bytes, how: str) -> bytes:
    """``cut:N`` drops the last bytes; the others replace or repack all of it."""
    kind, _, argument = how.partition(":")
    packed = gzip.compress(data, mtime=0)
    return {
        "empty": lambda: b"",
        "cut": lambda: data[: -int(argument)],
        "gzip": lambda: packed,
        "gzip-cut": lambda: packed[: -int(argument)],
        "text": lambda: b"BEGIN:VCALENDAR\nVERSION:2.0\n" * 40,
        "json": lambda: b'{"displayTimeUnit":"ns","traceEvents":[]}',
        "zip": lambda: b"PK\x03\x04" + data[:200],
        "utf8": lambda: data.decode("utf-8", "replace").encode(),
        "tail": lambda: data + bytes.fromhex(argument),
        "zeros": lambda: bytes(4096),
    }[kind]()


def resolved(cases: dict[str, Description], name: str) -> Description:
    """A case with what it inherits from the one it is ``like``: the description, not the expectations."""
    case = cases[name]
    if "like" not in case:
        return case
    own = {"codes", "absent", "warns", "note", "args", "raw", "file", "verdict", "like", "id"}
    return {key: value for key, value in resolved(cases, case["like"]).items() if key not in own} | case


def write(case: Description, cases: dict[str, Description], folder: Path) -> Path:
    """Write a case's file or files; return what to audit."""
    for number, each in enumerate(case.get("file", [])):
        path = folder / each["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(build(resolved(cases, each["like"]), f"host-{number}"))
    if "file" in case:
        return folder
    path = folder / "h.xplane.pb"
    data = build(case)
    path.write_bytes(damage(data, case["raw"]) if "raw" in case else data)
    return path
