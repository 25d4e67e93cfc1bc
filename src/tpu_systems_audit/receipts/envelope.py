"""A signed envelope (DSSE with Ed25519) that has one form only: any other bytes are not it.

``cryptography`` is imported where a signature is made or checked. A signature says who vouched, never what is true.
"""

import base64
import binascii
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpu_systems_audit.units import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
KEY_BYTES = 32


class InvalidError(ValueError):
    """What should be an envelope, or what is in it, is none; the text says why."""


@dataclass(frozen=True)
class Opened:
    """The payload of an envelope whose signature holds, and the fingerprint of the key that made it."""

    payload: dict[str, Any]
    signer: str


def canonical(value: object) -> bytes:
    r"""Write JSON in its one form: keys sorted, no space, UTF-8, no NaN.

    >>> canonical({"b": [1.5, None], "a": "ü"})
    b'{"a":"\xc3\xbc","b":[1.5,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def signed_bytes(payload: bytes) -> bytes:
    """What is signed: type and payload, each after its length (PAE of the DSSE protocol, version 1).

    >>> signed_bytes(b"{}")
    b'DSSEv1 28 application/vnd.in-toto+json 2 {}'
    """
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload: dict[str, Any], key: "Ed25519PrivateKey") -> bytes:
    """Sign a payload and put it into an envelope, with the public key beside the signature.

    Args:
        payload: a JSON object.
        key: from ``signing_key``.
    """
    data = canonical(payload)
    public = key.public_key().public_bytes_raw()
    signature = {
        "keyid": fingerprint(public),
        "publicKey": _encoded(public),
        "sig": _encoded(key.sign(signed_bytes(data))),
    }
    return canonical({"payload": _encoded(data), "payloadType": PAYLOAD_TYPE, "signatures": [signature]})


def unseal(data: bytes) -> Opened:
    """Open an envelope and check everything that its bytes alone can show.

    Args:
        data: of the file, whole.

    Raises:
        InvalidError: when a form is not the one form, or the signature does not hold.
    """
    envelope = _object(data, "the envelope", {"payload", "payloadType", "signatures"})
    signatures = envelope["signatures"]
    if envelope["payloadType"] != PAYLOAD_TYPE:
        raise InvalidError(f"the payload's type is not {PAYLOAD_TYPE}")
    if not isinstance(signatures, list) or len(signatures) != 1 or not isinstance(signatures[0], dict):
        raise InvalidError("there is not exactly one signature")
    if signatures[0].keys() != {"keyid", "publicKey", "sig"}:
        raise InvalidError("the signature does not have exactly keyid, publicKey and sig")
    payload = _decoded(envelope["payload"], "payload")
    public = _decoded(signatures[0]["publicKey"], "publicKey")
    if len(public) != KEY_BYTES or signatures[0]["keyid"] != fingerprint(public):
        raise InvalidError("the key id is not the key's fingerprint")
    if not _holds(public, _decoded(signatures[0]["sig"], "sig"), signed_bytes(payload)):
        raise InvalidError("the signature does not hold")
    return Opened(_object(payload, "the payload"), signatures[0]["keyid"])


def fingerprint(public: bytes) -> str:
    """Name a public key: the SHA-256 of its raw bytes, in hexadecimal.

    Args:
        public: of Ed25519, raw.
    """
    return hashlib.sha256(public).hexdigest()


def key_path() -> Path:
    """Where the signing key lies unless one is named: in the user's configuration folder."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "tpu-audit" / "key.pem"


def signing_key(path: Path) -> "Ed25519PrivateKey":
    """Read the signing key; where none lies, make one that only its owner can read, and never replace one.

    Args:
        path: of the key, in PEM.

    Raises:
        InputError: when the file is no Ed25519 key, or cannot be read or made.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(Ed25519PrivateKey.generate().private_bytes(*form))
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise InputError(f"key {path}: {error.strerror or error}; a file that can be read or made is right") from None
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"key {path}: is not an Ed25519 private key in PEM without a password; one is right")
    return key


def _holds(public: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _object(data: bytes, what: str, keys: set[str] | None = None) -> dict[str, Any]:
    """Read a JSON object that is written in its one form."""
    try:
        found = json.loads(data)
        again = canonical(found)
    except (ValueError, RecursionError):
        raise InvalidError(f"{what} is not JSON") from None
    if not isinstance(found, dict) or (keys is not None and found.keys() != keys):
        raise InvalidError(f"{what} does not have the keys it must have")
    if again != data:
        raise InvalidError(f"{what} is not written in its one form")
    return found


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: object, what: str) -> bytes:
    """Read base64 that encodes to itself again: its last character has bits that say nothing."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        data = None
    if data is None or _encoded(data) != text:
        raise InvalidError(f"{what} is not base64 in its one form")
    return data
