"""Traces with known verdicts: synthetic ones, and real ones of CPUs and of the TPU compiler."""

import gzip
import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.traces.trace_writer import build, damage, resolved, varint, write
from tpu_systems_audit.traces import Audit, audit
from tpu_systems_audit.units import InputError

CASES = Path(__file__).parents[1] / "cases" / "traces"
REAL = json.loads((CASES / "real" / "expected.json").read_text(encoding="utf-8"))


def load(name: str) -> dict[str, dict]:
    cases = {case["id"]: case for case in tomllib.loads((CASES / name).read_text(encoding="utf-8"))["case"]}
    return {key: resolved(cases, key) for key in cases}


BASIC, LIBTPU = load("basic.toml"), load("libtpu.toml")
CLEAN = LIBTPU["clean-raw"]


def agree(case: dict, path: Path) -> None:
    """The verdict, the errors that must be there, those that must not, the warnings."""
    hosts = int(case["args"][1]) if case.get("args") else None
    if case["verdict"] == "refused":
        with pytest.raises(InputError) as refusal:
            audit(path, hosts)
        assert "\n" not in f"{refusal.value}"
        return
    found = audit(path, hosts)
    assert found.verdict == case["verdict"], found.findings
    assert set(case.get("codes", [])) <= codes(found)
    assert codes(found).isdisjoint(case.get("absent", []))
    assert set(case.get("warns", [])) <= codes(found) | codes(found, "warning")
    assert len(found.steps) == case["steps"] if isinstance(case.get("steps"), int) else True


def codes(found: Audit, severity: str = "error") -> set[str]:
    return {finding.code for finding in found.findings if finding.severity == severity}


def made(description: dict, folder: Path, raw: str = "") -> Audit:
    path = folder / "h.xplane.pb"
    data = build({"devices": 1} | description)
    path.write_bytes(damage(data, raw) if raw else data)
    return audit(path)


@pytest.mark.parametrize("name", BASIC)
def test_a_basic_trace_gets_its_verdict(name: str, tmp_path: Path) -> None:
    if "text" in BASIC[name]:
        (tmp_path / BASIC[name]["text"]["path"]).write_text(BASIC[name]["text"]["text"], encoding="utf-8")
        agree(BASIC[name], tmp_path)
    else:
        agree(BASIC[name], write(BASIC[name], BASIC, tmp_path))


@pytest.mark.parametrize("name", LIBTPU)
def test_a_trace_as_libtpu_writes_it_gets_its_verdict(name: str, tmp_path: Path) -> None:
    agree(LIBTPU[name], write(LIBTPU[name], LIBTPU, tmp_path))


@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_gets_its_verdict(name: str) -> None:
    agree(REAL[name], CASES / "real" / REAL[name]["path"])


PAGES = Path(__file__).parents[2] / "docs" / "traces"


@pytest.mark.parametrize("name", tomllib.loads((PAGES / "traces.toml").read_text(encoding="utf-8")))
def test_a_trace_that_the_pages_show_is_what_its_description_makes(name: str) -> None:
    description = tomllib.loads((PAGES / "traces.toml").read_text(encoding="utf-8"))[name]
    assert (PAGES / f"{name}.xplane.pb").read_bytes() == build(description, "host-0")


# Beyond the cases: what else the rules say


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"split_lines": True}, "clean"),
        ({"unsorted": True}, "clean"),
        ({"host_plane": False, "env": {"options": False}}, "tracer-off"),
        ({"env": {"options": False}}, "clean"),
        ({"env": {"plane": False}}, "clean"),
        ({"hostname": False}, "clean"),
        ({"errors": ["the device was lost"]}, "incomplete"),
        ({"warnings": ["it was slow"]}, "clean"),
        ({"dropped": True}, "incomplete"),
        ({"devices": 4, "device": [{"n": 1, "missing": True}]}, "incomplete"),
        ({"devices": 4, "device": [{"n": 0, "missing": True}]}, "incomplete"),
        ({"devices": 8, "device": [{"n": n, "missing": True} for n in range(4)]}, "clean"),
        ({"per_step_programs": [["jit_grad(1)", 0.6], ["jit_update(2)", 0.4]]}, "clean"),
        ({"per_step_programs": [["jit_grad(1)", 0.6], ["jit_update(2)", 0.4]], "annotate": False}, "clean"),
        ({"per_step_programs": [["jit_grad(1)", 0.6], ["jit_update(2)", 0.4]], "steps_line": True}, "clean"),
        ({"programs": {2: "jit_step(9)"}, "steps_line": True}, "programs"),
        ({"small_programs": [["jit_convert_element_type(5)", 0.01]]}, "clean"),
        ({"stamp": 1_790_000_000_000_000_000}, "clean"),
        ({"stamp": 1_790_000_000_000_000_000, "steps": {"first": 5001.0}}, "lead-in"),
        ({"steps": {"gap": 30.0}}, "clean"),  # slow, and the same every time
        ({"modules_line": False}, "clean"),  # steps from the annotations
        ({"device": [{"n": 0, "name": "/device:TPU:0 SparseCore 0"}]}, "incomplete"),
        ({"devices": 2, "device": [{"n": 1, "name": "/device:TPU:0"}]}, "clean"),  # merged: other ids
        ({"chip": "TPU7x", "devices": 2}, "clean"),
        ({"host": [{"thread": "", "name": "TfrtTpuCompiler::Compile", "at": 3.0, "ms": 1.0}]}, "compile"),
        ({"host": [{"name": "backend_compile", "at": 3.0, "ms": 1.0}]}, "compile"),
        ({"host": [{"name": "PjRtCApiClient::CompileAndLoad(jit_f)", "at": 3.0, "ms": 1.0}]}, "compile"),
        ({"host": [{"name": "$compiler.py:341 backend_compile_and_load", "at": 3.0, "ms": 1.0}]}, "compile"),
        ({"host": [{"name": "LoadProgramCacheMiss", "at": 3.0, "ms": 1.0}]}, "cache-load"),
        ({"host": [{"name": "LoadProgramMaybeFromCache", "at": 3.0, "ms": 1.0}]}, "clean"),
        ({"host": [{"name": "XlaLinearize", "at": 3.0, "ms": 1.0}]}, "clean"),
        ({"host": [{"name": "$data.py:1 compile", "at": 3.0, "ms": 1.0}]}, "clean"),
        ({"host": [{"name": "lower_sharding_computation", "at": 3.0, "ms": 1.0}]}, "clean"),
        ({"host": [{"name": "TpuCompiler::Compile", "at": 80.0, "ms": 30.0}]}, "clean"),  # after the last step
        ({"steps": {"first": 900.0}, "host": [{"thread": "waits", "name": "$queue.py:1 get", "at": 1.0, "ms": 800.0}]},
         "clean"),
        ({"steps": {"first": 900.0}, "host": [{"name": "$time sleep", "at": 1.0, "ms": 800.0}]}, "host-block"),
        ({"steps": {"first": 900.0}, "host": [{"name": "prepare", "at": 1.0, "ms": 240.0}]}, "clean"),
    ],
    ids=str,
)  # fmt: skip
def test_a_changed_trace_gets_the_verdict_of_the_rules(changes: dict, wanted: str, tmp_path: Path) -> None:
    found = made(CLEAN | changes, tmp_path)
    if wanted == "clean":
        assert (found.verdict, codes(found)) == ("clean", set())
    else:
        assert found.verdict == "not-clean"
        assert wanted in codes(found)


def test_a_finding_names_event_thread_time_and_fix(tmp_path: Path) -> None:
    found = made(LIBTPU["seed"], tmp_path)
    finding = next(each for each in found.findings if each.code == "compile")
    evidence = finding.evidence[0]
    assert (evidence.event, evidence.thread) == ("backend_compile_and_load", "python")
    assert (evidence.start_us, evidence.duration_us) == (4_000, 12_000_000)
    assert finding.fix
    assert all("\n" not in each.message + each.fix for each in found.findings)


def test_the_steps_are_told_in_microseconds(tmp_path: Path) -> None:
    found = made(LIBTPU["seed"], tmp_path)
    assert [step.duration_us for step in found.steps] == [9000.0] * 5
    assert (found.steps[0].start_us, found.median_step_us) == (12_010_000, 9000.0)


@pytest.mark.parametrize("raw", ["json", "zip", "zeros", "utf8", "text", "empty", "gzip-cut:9", "cut:1"])
def test_what_is_no_trace_is_refused_in_one_line_that_names_the_file(raw: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"h\.xplane\.pb") as refusal:
        made(CLEAN, tmp_path, raw)
    assert "\n" not in f"{refusal.value}"


def test_a_file_cut_between_two_planes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="truncated"):
        made(CLEAN | {"env": {"plane": False}, "hostname": False, "metadata": False}, tmp_path)


def test_riegeli_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "h.xplane.riegeli").write_bytes(build(CLEAN))
    for path in (tmp_path, tmp_path / "h.xplane.riegeli"):
        with pytest.raises(InputError, match="riegeli"):
            audit(path)


# Several hosts, several runs


def put(folder: Path, run: str, host: str, description: dict = CLEAN) -> Path:
    path = folder / "plugins" / "profile" / run / f"{host}.xplane.pb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build(description, host))
    return path


def test_the_newest_run_is_the_last_by_name_whatever_the_times_of_the_files(tmp_path: Path) -> None:
    put(tmp_path, "2026_01_02_00_00_00", "a")
    os.utime(put(tmp_path, "2026_01_01_00_00_00", "a", LIBTPU["seed"]), (2e9, 2e9))
    found = audit(tmp_path)
    assert (found.verdict, found.run) == ("clean", "2026_01_02_00_00_00")
    assert found.passed_over == ("2026_01_01_00_00_00",)


def test_a_link_to_a_run_is_that_run(tmp_path: Path) -> None:
    run = put(tmp_path, "2026_01_02_00_00_00", "a").parent
    (run.parent / "latest").symlink_to(run)
    (run / "b.xplane.pb").symlink_to(run / "a.xplane.pb")
    found = audit(tmp_path)
    assert (found.run, len(found.files), found.passed_over) == ("2026_01_02_00_00_00", 1, ())


def test_a_host_that_named_its_folder_seconds_later_is_found_and_said(tmp_path: Path) -> None:
    put(tmp_path, "2026_01_01_00_00_00", "a")
    put(tmp_path, "2026_01_01_00_00_02", "b")
    assert codes(audit(tmp_path), "warning") == {"hosts"}
    error = next(each for each in audit(tmp_path, 2).findings if each.severity == "error")
    assert error.code == "hosts"
    assert "2026_01_01_00_00_00/a.xplane.pb" in error.message


def test_the_plain_file_and_its_gzip_are_one_host(tmp_path: Path) -> None:
    path = put(tmp_path, "2026_01_01_00_00_00", "a")
    (path.parent / "a.xplane.pb.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert [file.name for file in audit(tmp_path).files] == ["a.xplane.pb"]


def test_what_xprof_kept_of_an_older_trace_is_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path, "2026_01_01_00_00_00", "a")
    kept = path.parent / "ALL_HOSTS.op_stats_v2.pb"
    kept.write_bytes(b"")
    os.utime(kept, (1e9, 1e9))
    assert codes(audit(tmp_path), "warning") == {"stale-cache"}
    os.utime(kept, (4e9, 4e9))
    assert codes(audit(tmp_path), "warning") == set()


# Whatever the bytes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_mutated_trace_gets_a_verdict_or_a_one_line_refusal(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["seed", "clean-raw", "no-device-plane", "steps-line"]))
    whole = bytearray(build(LIBTPU[name]))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        match data.draw(st.sampled_from(["flip", "set", "cut", "insert", "repeat"])):
            case "flip":
                whole[at] ^= 1 << data.draw(st.integers(0, 7))
            case "set":
                whole[at] = data.draw(st.integers(0, 255))
            case "cut":
                del whole[at : at + data.draw(st.integers(1, 40))]
            case "insert":
                whole[at:at] = data.draw(st.binary(min_size=1, max_size=12))
            case "repeat":
                whole[at:at] = whole[at : at + 40]
        if not whole:
            break
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(bytes(whole))
    try:
        assert audit(path).verdict in ("clean", "not-clean", "rehearsal")
    except InputError as refusal:
        assert "\n" not in f"{refusal}"


@pytest.mark.parametrize("huge", [2**31, 2**62, 2**63, 2**64 - 1])
def test_a_number_beyond_any_trace_is_no_traceback(huge: int, tmp_path: Path) -> None:
    data = build(CLEAN)
    for field in (b"\x10", b"\x18"):
        path = tmp_path / "h.xplane.pb"
        line = b"\x22" + varint(2 + 1 + len(varint(huge))) + b"\x08\x01" + field + varint(huge)
        body = b"\x12\x06python" + line
        inner = b"\x12\x09/host:CPU\x1a" + varint(len(body)) + body
        path.write_bytes(data + b"\x0a" + varint(len(inner)) + inner)
        try:
            assert audit(path).verdict
        except InputError as refusal:
            assert "\n" not in f"{refusal}"
