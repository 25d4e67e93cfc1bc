"""Who ran what where, and can you check it: signed statements about audited traces."""

from tpu_systems_audit.receipts.envelope import (
    InvalidError,
    Opened,
    canonical,
    fingerprint,
    key_path,
    seal,
    signing_key,
    unseal,
)
from tpu_systems_audit.receipts.statement import create, read, rung, statement
from tpu_systems_audit.receipts.verify import Attached, Verification, attach, attached, verify

__all__ = [
    "Attached",
    "InvalidError",
    "Opened",
    "Verification",
    "attach",
    "attached",
    "canonical",
    "create",
    "fingerprint",
    "key_path",
    "read",
    "rung",
    "seal",
    "signing_key",
    "statement",
    "unseal",
    "verify",
]
