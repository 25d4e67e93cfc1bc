"""Is this trace evidence: the audit of what a profiler wrote, read where it lies, and the capture of a warmed one."""

from tpu_systems_audit.traces.audit import CLEAN, NOT_CLEAN, REHEARSAL, Audit, Step, audit
from tpu_systems_audit.traces.capture import capture, matmul_step, warmed_trace
from tpu_systems_audit.traces.files import SUFFIXES, TraceRun, find_run
from tpu_systems_audit.traces.recording import TraceFile
from tpu_systems_audit.traces.rules import ERROR, WARNING, Evidence, Finding
from tpu_systems_audit.traces.timeline import KINDS, Bar, Row, Timeline, timelines

__all__ = [
    "CLEAN",
    "ERROR",
    "KINDS",
    "NOT_CLEAN",
    "REHEARSAL",
    "SUFFIXES",
    "WARNING",
    "Audit",
    "Bar",
    "Evidence",
    "Finding",
    "Row",
    "Step",
    "Timeline",
    "TraceFile",
    "TraceRun",
    "audit",
    "capture",
    "find_run",
    "matmul_step",
    "timelines",
    "warmed_trace",
]
