"""A receipt holds for the bytes it was made from, and for nothing else."""

import base64
import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.receipts.ed25519 import verifies
from tests.traces.trace_writer import build, resolved
from tpu_systems_audit.cli import main
from tpu_systems_audit.receipts import (
    Verification,
    attach,
    attached,
    canonical,
    create,
    fingerprint,
    seal,
    signing_key,
    statement,
    verify,
)
from tpu_systems_audit.traces import audit
from tpu_systems_audit.units import InputError

TRACES = Path(__file__).parents[1] / "cases" / "traces"
CASES = {case["id"]: case for case in tomllib.loads((TRACES / "libtpu.toml").read_text(encoding="utf-8"))["case"]}
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PRECISION = {"errors": {"bf16": {"max_abs": 0.25, "rel_fro": 0.01, "bound": 0.5, "within_bound": True}}}


def trace_file(folder: Path, name: str = "clean-raw") -> Path:
    path = folder / f"{name}.xplane.pb"
    path.write_bytes(build(resolved(CASES, name)))
    return path


def small_trace(folder: Path) -> Path:
    """Few bytes, so that every bit of them and of its receipt can be flipped."""
    path = folder / "small.xplane.pb"
    path.write_bytes(build({"steps": {"n": 3}, "no_ops": True, "noise_threads": 0, "metadata": False}))
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A receipt and its trace."""
    trace = trace_file(tmp_path)
    create(trace, tmp_path / "receipt.json", KEY, precision=PRECISION)
    return tmp_path / "receipt.json", trace


@pytest.mark.parametrize(
    ("name", "result", "rung"),
    [("clean-raw", "PASSED", "chip"), ("no-device-plane", "WARNED", "rehearsal"), ("seed", "FAILED", "none")],
)
def test_a_receipt_holds_and_says_its_rung(name: str, result: str, rung: str, tmp_path: Path) -> None:
    trace = trace_file(tmp_path, name)
    made = create(trace, tmp_path / "r.json", KEY)
    assert (made["predicate"]["result"], made["predicate"]["rung"]) == (result, rung)
    signer = fingerprint(KEY.public_key().public_bytes_raw())
    assert verify(tmp_path / "r.json", trace) == Verification(True, (), signer, rung)


def test_only_a_clean_trace_of_a_tpu_stands_on_the_chip_rung(tmp_path: Path) -> None:
    for name in CASES:
        case = resolved(CASES, name)
        if "raw" in case or "file" in case:
            continue
        found = audit(trace_file(tmp_path, name))
        standing = statement(found, None, None)["predicate"]["rung"]
        assert (standing == "chip") == (found.verdict == "clean" and found.platform == "tpu")


def test_the_independent_verifier_knows_the_vectors_of_rfc_8032() -> None:
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert verifies(public, b"\x72", signature)
    assert not verifies(public, b"\x73", signature)


def test_the_signature_holds_by_another_hand(pair: tuple[Path, Path]) -> None:
    envelope = json.loads(pair[0].read_bytes())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    message = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    public, signature = (base64.b64decode(envelope["signatures"][0][key]) for key in ("publicKey", "sig"))
    assert verifies(public, message, signature)
    assert not verifies(public, message + b" ", signature)


def test_securesystemslib_verifies_the_envelope(pair: tuple[Path, Path]) -> None:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError
    from securesystemslib.signer import SSlibKey

    made = json.loads(pair[0].read_bytes())
    (signature,) = made["signatures"]
    public = base64.b64decode(signature["publicKey"]).hex()
    key = SSlibKey(signature["keyid"], "ed25519", "ed25519", {"public": public})
    envelope = Envelope.from_dict(made)
    assert list(envelope.verify([key], 1)) == [key.keyid]
    envelope.payload += b" "
    with pytest.raises(VerificationError):
        envelope.verify([key], 1)


def test_the_statement_is_one_of_in_toto(pair: tuple[Path, Path]) -> None:
    made = json.loads(base64.b64decode(json.loads(pair[0].read_bytes())["payload"]))
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert set(made["subject"][0]) == {"name", "digest"}
    predicate = made["predicate"]
    assert predicate["result"] in ("PASSED", "WARNED", "FAILED")
    tests = [predicate[key] for key in ("passedTests", "warnedTests", "failedTests")]
    assert sum(map(len, tests)) == len({rule for each in tests for rule in each}) == 11


# Nothing else holds


@pytest.mark.slow
def test_no_flipped_bit_of_a_receipt_holds(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    receipt, broken = tmp_path / "r.json", tmp_path / "broken.json"
    create(trace, receipt, KEY)
    data = receipt.read_bytes()
    for at in range(len(data)):
        for bit in range(8):
            broken.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            assert not verify(broken, trace).valid, (at, bit)


@pytest.mark.slow
def test_no_flipped_bit_of_a_trace_holds(tmp_path: Path) -> None:
    trace, broken = small_trace(tmp_path), tmp_path / "broken.xplane.pb"
    receipt = tmp_path / "r.json"
    create(trace, receipt, KEY)
    data = trace.read_bytes()
    for at in range(len(data)):
        for bit in range(8):
            broken.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            try:
                assert not verify(receipt, broken).valid, (at, bit)
            except InputError as refusal:
                assert "\n" not in f"{refusal}"


def leaves(document: Any, path: tuple = ()) -> list[tuple]:
    if isinstance(document, dict):
        return [each for key, value in document.items() for each in leaves(value, (*path, key))] or [path]
    if isinstance(document, list) and document:
        return [each for at, value in enumerate(document) for each in leaves(value, (*path, at))]
    return [path]


def changed(value: Any) -> Any:
    match value:
        case bool() | None:
            return "other"
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case _:
            return [1]


def resigned(statement_: dict, path: Path, key: Ed25519PrivateKey = KEY) -> Path:
    path.write_bytes(seal(statement_, key))
    return path


FREE = {("subject", 0, "name"), ("predicate", "tool", "name"), ("predicate", "tool", "version")}


@pytest.mark.parametrize("name", ["clean-raw", "seed", "no-device-plane"])
def test_every_changed_figure_is_caught_although_it_is_signed_again(name: str, tmp_path: Path) -> None:
    trace = trace_file(tmp_path, name)
    made = create(trace, tmp_path / "r.json", KEY)
    caught = 0
    for path in leaves(made):
        if path in FREE:  # who says so is all that stands behind these
            continue
        other = json.loads(json.dumps(made))
        place = other
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = changed(place[path[-1]])
        found = verify(resigned(other, tmp_path / "other.json"), trace)
        assert not found.valid, path
        assert found.reasons
        caught += 1
    assert caught > 20


def test_the_reason_names_the_figure(pair: tuple[Path, Path], tmp_path: Path) -> None:
    made = statement(audit(pair[1]), None, None)
    made["predicate"]["audit"]["median_step_us"] = 8000.0
    found = verify(resigned(made, tmp_path / "other.json"), pair[1])
    assert found.reasons == ("predicate.audit.median_step_us says 8000.0, the trace says 9000.0",)


def test_a_rehearsal_cannot_be_signed_as_a_chips(tmp_path: Path) -> None:
    trace = trace_file(tmp_path, "no-device-plane")
    made = create(trace, tmp_path / "r.json", KEY)
    made["predicate"] |= {"rung": "chip", "result": "PASSED"}
    found = verify(resigned(made, tmp_path / "other.json"), trace)
    assert not found.valid
    assert any("rung" in reason for reason in found.reasons)


def test_another_signer_is_told(pair: tuple[Path, Path]) -> None:
    own = fingerprint(KEY.public_key().public_bytes_raw())
    assert verify(*pair, own).valid
    found = verify(*pair, "0" * 64)
    assert (found.valid, found.signer) == (False, own)


def test_a_key_that_is_swapped_with_its_signature_is_another_signer(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = Ed25519PrivateKey.generate()
    made = json.loads(base64.b64decode(json.loads(pair[0].read_bytes())["payload"]))
    own = fingerprint(KEY.public_key().public_bytes_raw())
    assert not verify(resigned(made, tmp_path / "r2.json", other), pair[1], own).valid


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: e | {"extra": 1},
        lambda e: e | {"payloadType": "text/plain"},
        lambda e: e | {"signatures": []},
        lambda e: e | {"signatures": e["signatures"] * 2},
        lambda e: e | {"signatures": [e["signatures"][0] | {"keyid": "0" * 64}]},
        lambda e: e | {"payload": e["payload"].rstrip("=") + "\n"},
        lambda e: e | {"payload": 7},
        lambda e: [e],
        lambda e: {},
    ],
)  # fmt: skip
def test_an_envelope_of_another_form_is_not_valid(
    spoil: Callable[[dict], object], pair: tuple[Path, Path], tmp_path: Path
) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(canonical(spoil(json.loads(pair[0].read_bytes()))))
    found = verify(path, pair[1])
    assert (found.valid, len(found.reasons)) == (False, 1)


def test_space_that_changes_nothing_is_not_valid(pair: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for data in (pair[0].read_bytes() + b"\n", json.dumps(json.loads(pair[0].read_bytes()), indent=1).encode()):
        path.write_bytes(data)
        assert not verify(path, pair[1]).valid


@pytest.mark.parametrize(
    "precision",
    [
        {},
        {"errors": {}},
        {"errors": {"bf16": {}}},
        {"errors": {"bf16": PRECISION["errors"]["bf16"] | {"max_abs": 0.6}}},
        {"errors": {"bf16": PRECISION["errors"]["bf16"] | {"within_bound": False}}},
        {"errors": {"bf16": PRECISION["errors"]["bf16"] | {"bound": "0.5"}}},
    ],
)
def test_an_error_summary_that_cannot_be_is_neither_signed_nor_believed(precision: dict, tmp_path: Path) -> None:
    trace = trace_file(tmp_path)
    with pytest.raises(InputError, match="precision"):
        create(trace, tmp_path / "r.json", KEY, precision=precision)
    signed = resigned(statement(audit(trace), None, precision), tmp_path / "r.json")
    assert not verify(signed, trace).valid


def test_random_damage_gets_an_answer_and_never_holds(pair: tuple[Path, Path], tmp_path: Path) -> None:
    data, path = pair[0].read_bytes(), tmp_path / "broken.json"
    for seed in range(300):
        draw = random.Random(seed)
        broken = bytearray(data)
        for _ in range(draw.randint(1, 5)):
            at = draw.randrange(len(broken))
            broken[at : at + draw.choice([0, 1, 1, 9])] = draw.randbytes(draw.choice([0, 1, 1, 7]))
        path.write_bytes(bytes(broken) or b"{")
        assert bytes(broken) == data or not verify(path, pair[1]).valid


@pytest.mark.slow
def test_no_mutant_of_a_real_trace_or_its_receipt_holds(tmp_path: Path) -> None:
    trace = tmp_path / "warm.xplane.pb"
    trace.write_bytes((TRACES / "real" / "warm.xplane.pb").read_bytes())
    create(trace, tmp_path / "r.json", KEY)
    broken = tmp_path / "broken"
    for seed in range(10_000):
        draw = random.Random(seed)
        of_trace = draw.random() < 0.5
        data = bytearray((trace if of_trace else tmp_path / "r.json").read_bytes())
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        broken.write_bytes(data)
        try:
            found = verify(tmp_path / "r.json", broken) if of_trace else verify(broken, trace)
        except InputError as refusal:  # a trace that is none any more
            assert "\n" not in f"{refusal}"
        else:
            assert not found.valid and found.reasons, seed


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"1e999", b"NaN", b'"\\ud800"', b"9" * 9999]
)
def test_hostile_json_is_not_valid(data: bytes, pair: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(data)
    assert not verify(path, pair[1]).valid


# Files and keys


def test_nothing_is_overwritten(pair: tuple[Path, Path]) -> None:
    before = pair[0].read_bytes()
    with pytest.raises(InputError, match="there already"):
        create(pair[1], pair[0], KEY)
    assert pair[0].read_bytes() == before


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key.pem"
    first = signing_key(path).private_bytes_raw()
    assert path.stat().st_mode & 0o777 == 0o600
    assert signing_key(path).private_bytes_raw() == first


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused_and_kept(text: str, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="Ed25519"):
        signing_key(path)
    assert path.read_text(encoding="utf-8") == text


def test_attaching_copies_receipt_and_trace_once(pair: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "receipts"
    made = attach(*pair, folder)
    assert attach(*pair, folder) == made
    assert verify(*made).valid
    made[1].write_bytes(b"another")
    with pytest.raises(InputError, match="another file"):
        attach(*pair, folder)


@pytest.mark.parametrize("write", range(1, 8))
def test_attaching_that_is_killed_leaves_nothing_half(write: int, pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Killed at the n-th call that changes the folder: what is there holds, and attaching again completes it."""
    folder = tmp_path / "docs" / "receipts"
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tpu_systems_audit.receipts import attach\n"
        f"left = [{write}]\n"
        "def dying(name, *_):\n"
        "    if name in ('open', 'os.rename', 'os.mkdir', 'os.chmod') and 'receipts' in str(_):\n"
        "        left[0] -= 1\n"
        "        if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(dying)\n"
        f"attach(Path({str(pair[0])!r}), Path({str(pair[1])!r}), Path({str(folder)!r}))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert all(each.found.valid for each in attached(folder))
    made = attach(*pair, folder)
    assert made[0].read_bytes() == pair[0].read_bytes() and made[1].read_bytes() == pair[1].read_bytes()
    assert [each.receipt for each in attached(folder)] == [made[0]]


def test_a_receipt_with_findings_of_many_hosts_holds_under_other_names(tmp_path: Path) -> None:
    """What is attached is called by number, twelve hosts in their order, and verifying does not mind."""
    run = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    run.mkdir(parents=True)
    for number in range(12):
        case = resolved(CASES, "seed" if number == 3 else "clean-raw")
        (run / f"host-{number:02}.xplane.pb").write_bytes(build(case, f"host-{number}"))
    create(tmp_path, tmp_path / "r.json", KEY)
    attach(tmp_path / "r.json", tmp_path, tmp_path / "docs")
    (kept,) = attached(tmp_path / "docs")
    assert kept.found.valid, kept.found.reasons
    assert kept.found.rung == "none"


def test_every_receipt_of_this_site_holds() -> None:
    held = attached(Path(__file__).parents[2] / "docs" / "receipts")
    assert held
    assert [(each.receipt.name, each.found.reasons) for each in held if not each.found.valid] == []


def test_what_does_not_hold_is_not_attached(pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not hold"):
        attach(pair[0], trace_file(tmp_path, "seed"), tmp_path / "receipts")
    assert not (tmp_path / "receipts").exists()


# The commands


def test_the_commands_say_valid_or_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    trace, other, receipt = trace_file(tmp_path), trace_file(tmp_path, "seed"), str(tmp_path / "r.json")
    assert main(["receipt", "create", str(trace), "--output", receipt, "--json"]) == 0
    signer = json.loads(capsys.readouterr().out)["signer"]
    assert main(["receipt", "verify", receipt, "--trace", str(trace), "--signer", signer, "--json"]) == 0
    assert {"valid": True, "reasons": [], "signer": signer}.items() <= json.loads(capsys.readouterr().out).items()
    assert main(["receipt", "verify", receipt, "--trace", str(other)]) == 1
    assert "NOT VALID" in capsys.readouterr().out
    assert main(["receipt", "show", receipt]) == 0
    assert "PASSED" in capsys.readouterr().out
    assert main(["receipt", "attach", receipt, "--trace", str(trace), "--docs", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    for words in (
        ("create", str(trace), "--output", receipt),
        ("create", "no/trace", "--output", str(tmp_path / "s.json")),
        ("create", str(trace), "--output", str(tmp_path / "s.json"), "--precision", str(trace)),
        ("create", str(trace), "--output", str(tmp_path / "s.json"), "--key", str(trace)),
        ("verify", "no/receipt", "--trace", str(trace)),
        ("show", str(trace)),
        ("attach", receipt, "--trace", str(other)),
    ):
        assert main(["receipt", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), words
