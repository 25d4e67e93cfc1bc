"""Reading a trace in place: what is passed over changes nothing, and memory stays small."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.traces.trace_writer import Plane, blob, num, varint
from tpu_systems_audit.traces import space as trace_space
from tpu_systems_audit.traces.recording import read
from tpu_systems_audit.traces.space import Event, event_names, events, opened
from tpu_systems_audit.traces.wire import DamagedError, fields, short_events

DURATIONS = st.one_of(st.integers(0, 2**36), st.sampled_from([0, 1, 2**35 - 1, 2**35, 2**35 + 1, 2**40]))


def written(folder: Path, names: int, found: list[tuple[int, int, int, bool]]) -> Path:
    """A host plane with one thread; each event is id, offset_ps, duration_ps, whether it has a stat."""
    plane = Plane("/host:CPU")
    plane.names = {f"$f.py:{number} f": number for number in range(1, names + 1)}
    plane.stat_names = {"step_num": 1}
    out = [num(1, 1), blob(2, "python")]
    for key, offset, duration, stat in found:
        body = num(1, key) + num(2, offset) + num(3, duration)
        out.append(blob(4, body + (blob(4, b"\x08\x01\x20\x07") if stat else b"")))
    plane.lines.append(b"".join(out))
    path = folder / "h.xplane.pb"
    path.write_bytes(plane.bytes() + blob(4, "host"))
    return path


def read_all(path: Path, pattern: re.Pattern[bytes] | None) -> list[Event]:
    with opened(path) as space:
        return list(events(space, space.planes[0].lines[0], pattern))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 2**44), DURATIONS, st.booleans()), max_size=60),
    st.sets(st.integers(1, 300)),
)
def test_only_bare_short_events_of_the_names_given_are_passed_over(
    tmp_path: Path, found: list[tuple[int, int, int, bool]], dull: set[int]
) -> None:
    path = written(tmp_path, 300, found)
    plain = read_all(path, None)
    kept = read_all(path, short_events(dull))
    assert [each[:3] for each in plain] == [each[:3] for each in found]
    passed_over = [each for each in plain if each not in kept]
    assert all(key in dull and duration < 2**35 and at == stop for key, _, duration, at, stop in passed_over)
    assert [each for each in plain if each in kept] == kept


def test_nearly_all_of_many_frames_are_passed_over(tmp_path: Path) -> None:
    draw = random.Random(1)
    found = [(draw.randint(1, 3000), 10**9 + n * 10**6, int(10 ** draw.uniform(5, 9.5)), False) for n in range(20_000)]
    assert len(read_all(written(tmp_path, 3000, found), short_events(range(1, 3001)))) < 0.1 * len(found)


def test_a_window_that_ends_within_an_event_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(1 + n % 2, 10**10 + n * 10**6, 10**6, False) for n in range(2000)]
    path = written(tmp_path, 2, found)
    pattern = short_events([1])
    whole = [each for each in read_all(path, pattern) if each[0] == 2]
    monkeypatch.setattr(trace_space, "WINDOW_BYTES", 37)
    assert [each for each in read_all(path, pattern) if each[0] == 2] == whole
    assert len(whole) == 1000


def test_a_compile_among_many_frames_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, 3000, [(1 + n % 3000, 10**9 + n * 10**6, 10**7, False) for n in range(30_000)])
    plane = Plane("/host:CPU")
    plane.names = {f"$f.py:{n} f": n for n in range(1, 3001)}
    plane.line("python", [(f"$f.py:{1 + n % 3000} f", n * 1e-3, 1e-3) for n in range(30_000)])
    plane.line("other", [("TpuCompiler::Compile", 7.0, 0.001)])
    path.write_bytes(plane.bytes() + blob(4, "host"))
    assert [event.name for event in read(path).host.unsteady["compile"]] == ["TpuCompiler::Compile"]


def test_names_are_read_from_their_entries(tmp_path: Path) -> None:
    with opened(written(tmp_path, 2, [])) as space:
        assert event_names(space, space.planes[0]) == {1: "$f.py:1 f", 2: "$f.py:2 f"}


@pytest.mark.parametrize("data", [b"\x0b", b"\x00\x00", b"\x0a\x05ab", b"\x08" + b"\x80" * 12, b"\x09abc"])
def test_an_impossible_field_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError):
        list(fields(data, 0, len(data)))


def test_an_event_that_ends_after_its_line_is_damage(tmp_path: Path) -> None:
    line = blob(2, "python") + b"\x22" + varint(90) + b"\x08\x01"
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(blob(1, blob(2, "/host:CPU") + blob(3, line)) + blob(4, "host"))
    with opened(path) as space, pytest.raises(DamagedError):
        list(events(space, space.planes[0].lines[0]))
