"""One trace file as the rules see it: options, devices, host."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tpu_systems_audit.traces.device import Device, read_devices
from tpu_systems_audit.traces.host import Host, read_host
from tpu_systems_audit.traces.space import PS_PER_NS, UNIX_STAMP_NS, Plane, Space, opened
from tpu_systems_audit.traces.wire import VARINT, fields
from tpu_systems_audit.units import InputError


@dataclass(frozen=True)
class TraceFile:
    """A file as it lies on disk."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Recording:
    """What one host recorded; *tracer_level* is None when the options are not in the file."""

    file: TraceFile
    hostname: str
    tracer_level: int | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    devices: tuple[Device, ...]
    host: Host
    versions: dict[str, str]

    @property
    def platform(self) -> str:
        """``tpu``, ``gpu``, ``cpu``, or ``unknown`` when nothing ran that says so."""
        platforms = {device.platform for device in self.devices}
        if platforms:
            return "tpu" if "tpu" in platforms else "gpu"
        return "cpu" if self.host.operations else "unknown"


def read(path: Path) -> Recording:
    """Read a trace file and its digest.

    Args:
        path: the ``*.xplane.pb``, plain or in gzip.

    Raises:
        InputError: when it is not a whole XSpace.
    """
    with opened(path) as space:
        planes = {plane.name: plane for plane in reversed(space.planes)}
        environment = planes.get("Task Environment")
        origin_ps = _origin_ps(space, environment)
        return Recording(
            file=TraceFile(path.name, *_digest(path)),
            hostname=next(iter(space.hostnames), ""),
            tracer_level=_tracer_level(environment),
            errors=space.errors,
            warnings=space.warnings,
            devices=read_devices(space, origin_ps),
            host=read_host(space, origin_ps),
            versions=_versions(planes.get("/host:metadata")),
        )


def _digest(path: Path) -> tuple[str, int]:
    """The SHA-256 of a file and its size, read in pieces."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; a file that can be read is right") from None


def _origin_ps(space: Space, environment: Plane | None) -> int:
    """When the profile started, on the clock that counts from 1970; the earliest stamp where the file does not say."""
    start = environment.stats.get("profile_start_time", 0) if environment else 0
    if isinstance(start, int) and start > UNIX_STAMP_NS:
        return start * PS_PER_NS
    stamps = [line.stamp_ns for plane in space.planes for line in plane.lines if line.stamp_ns > UNIX_STAMP_NS]
    return min(stamps, default=0) * PS_PER_NS


def _tracer_level(environment: Plane | None) -> int | None:
    options = environment.stats.get("profile_options") if environment else None
    if not isinstance(options, bytes):
        return None
    level = 0  # what is not written is zero
    for number, kind, value, _ in fields(options, 0, len(options)):
        if number == 2 and kind == VARINT:
            level = value
    return level


def _versions(metadata: Plane | None) -> dict[str, str]:
    stats = metadata.stats if metadata else {}
    return {name: str(stats[name]) for name in ("jax_version", "jaxlib_version") if name in stats}
