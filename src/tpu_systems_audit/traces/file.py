"""A trace's bytes on disk: mapped, not loaded, and what is plainly something else is refused."""

import gzip
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tpu_systems_audit.units import InputError

MOST_BYTES = 2**31  # of one protocol-buffer message
RIGHT = "the *.xplane.pb that its profiler finished is right"
OTHERS = ((b"{", "JSON"), (b"[", "JSON"), (b"PK\x03\x04", "a zip archive"), (b"riegeli", "riegeli"))


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Map a file into memory for as long as the block lasts; gzip is unpacked first, on disk.

    Args:
        path: the file.

    Raises:
        InputError: when it cannot be read, is empty or is plainly no XSpace.
    """
    try:
        with path.open("rb") as file, _plain(file, path) as whole:
            if not whole.seek(0, 2):
                raise InputError(f"{path}: is empty (0 bytes); {RIGHT}")
            with mmap.mmap(whole.fileno(), 0, access=mmap.ACCESS_READ) as data:
                for sign, what in OTHERS:
                    if data[: len(sign)] == sign:
                        raise InputError(f"{path}: is {what}, not an XSpace; {RIGHT}")
                yield data
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; {RIGHT}") from None


@contextmanager
def _plain(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """The file itself, or what its gzip holds."""
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    if not packed:
        yield file
        return
    with tempfile.TemporaryFile() as whole:
        try:
            unpacked = gzip.GzipFile(fileobj=file)
            while part := unpacked.read(2**20):
                whole.write(part)
                if whole.tell() > MOST_BYTES:
                    raise InputError(f"{path}: unpacks to more than {MOST_BYTES} bytes; no trace is that large")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: is a damaged gzip file ({error}); {RIGHT}") from None
        whole.flush()
        yield whole
