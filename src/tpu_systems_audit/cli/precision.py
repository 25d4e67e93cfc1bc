"""The precision commands: ``precision`` and ``precision probe``; each imports what it needs when asked."""

import argparse
from dataclasses import asdict
from pathlib import Path

from tpu_systems_audit.cli.apart import certified_apart
from tpu_systems_audit.cli.base import Commands, Document, command, document, finish, write_new
from tpu_systems_audit.cli.imports import needed
from tpu_systems_audit.units import InputError, shown, whole

DTYPES = ("bf16", "int8")
MOST_SIDE = 2**20
MOST_VALUES = 2**26
DEFAULT_SHAPE = "64,512,64"
DEFAULT_PROBE_SHAPE = "8,320,4"
DEFAULT_LIMIT_S = 60
MOST_LIMIT_S = 10**5


def add(commands: Commands) -> None:
    """Add the precision commands."""
    parser = command(
        commands, "precision", "Summarize BF16 and INT8 errors beside their bounds, or probe a dot product."
    )
    parser.add_argument("--shape", metavar="M,K,N", help=f"default {DEFAULT_SHAPE}")
    parser.add_argument("--seed", default="0", metavar="S", help="draws the operands (default 0)")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw error against K, into a new file")
    finish(parser, _precision)
    kinds = parser.add_subparsers(dest="kind", metavar="probe", required=False)
    probe = command(kinds, "probe", "Certify from outside what a dot product adds in, at a shape and at M = 1.")
    probe.argument_default = argparse.SUPPRESS  # what was given before the word probe stays
    probe.add_argument("--dot", required=True, metavar="MODULE:FUNCTION", help="takes (M, K) and (K, N), gives (M, N)")
    probe.add_argument("--dtype", default="bf16", metavar="D", help=f"{' or '.join(DTYPES)} (default bf16)")
    probe.add_argument("--shape", metavar="M,K,N", help=f"default {DEFAULT_PROBE_SHAPE}")
    probe.add_argument("--seed", metavar="S", help="draws positions, scales and data (default 0)")
    default = str(DEFAULT_LIMIT_S)
    probe.add_argument("--limit", default=default, metavar="S", help=f"seconds it may take in all (default {default})")
    finish(probe, _probe)


def _precision(args: argparse.Namespace) -> tuple[Document, int]:
    shape, seed = _shape(args.shape, DEFAULT_SHAPE), whole(args.seed, "--seed", least=0)
    jax = needed("jax")
    needed("ml_dtypes")
    from tpu_systems_audit.precision import summarize

    summary = summarize(shape, seed)
    platform = jax.default_backend()
    accumulator = asdict(summary.accumulator) | {"certified": summary.accumulator.verdict.startswith("certified")}
    within = all(error.within_bound for error in summary.errors.values())
    if args.svg:
        needed("matplotlib", "docs")
        from tpu_systems_audit.course import drift_plot, standalone

        write_new(args.svg, "--svg", standalone(drift_plot(seed)))
    answer = document(
        "precision",
        shape=shape,
        seed=seed,
        platform=platform,
        rehearsal=platform != "tpu",
        errors={name: asdict(error) for name, error in summary.errors.items()},
        accumulator=accumulator,
        svg=f"{args.svg}" if args.svg else None,
    )
    return answer, 0 if within else 1


def _probe(args: argparse.Namespace) -> tuple[Document, int]:
    shape, seed = _shape(args.shape, DEFAULT_PROBE_SHAPE), whole(args.seed, "--seed", least=0)
    if args.dtype not in DTYPES:
        raise InputError(f"--dtype: {shown(args.dtype)} is not a dtype for this; {' or '.join(DTYPES)} is right")
    limit_s = whole(args.limit, "--limit", most=MOST_LIMIT_S)
    needed("numpy")
    needed("ml_dtypes")
    from tpu_systems_audit.precision import CERTIFIED, EXACT, TRUNCATING

    found = certified_apart(args.dot, args.dtype, shape, seed, limit_s)
    passes = found["verdict"] in (CERTIFIED, TRUNCATING, EXACT)
    return document("precision probe", dot=args.dot, dtype=args.dtype, seed=seed, **found), 0 if passes else 1


def _shape(given: str | None, default: str) -> tuple[int, int, int]:
    text = default if given is None else given
    parts = text.split(",")
    if len(parts) != 3:
        raise InputError(f"--shape: {shown(text)} is not three sizes; M,K,N is right, such as {default}")
    m, length, n = (whole(part, f"--shape {side}", most=MOST_SIDE) for side, part in zip("MKN", parts, strict=True))
    if max(m * length, length * n, m * n) > MOST_VALUES:
        raise InputError(
            f"--shape: {shown(text)} has a matrix of more than {MOST_VALUES} values; smaller sides are right"
        )
    return m, length, n
