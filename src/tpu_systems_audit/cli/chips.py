"""The commands about chips: ``generations`` and ``roofline``."""

import argparse

from tpu_systems_audit.chips import generation, generations, matmul_intensity, roofline
from tpu_systems_audit.cli.base import Commands, Document, command, document, finish
from tpu_systems_audit.cli.documents import generation_entry, roofline_document
from tpu_systems_audit.units import InputError, number, shown, whole

MOST_SIDE = 10**9


def add(commands: Commands) -> None:
    """Add ``generations`` and ``roofline``."""
    _add_generations(commands)
    _add_roofline(commands)


def _add_generations(commands: Commands) -> None:
    parser = command(commands, "generations", "Show TPU generations: figures, ridge points, slices and sources.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as v5e or Trillium; all when left out")
    finish(parser, _generations)


def _add_roofline(commands: Commands) -> None:
    parser = command(commands, "roofline", "Tell whether arithmetic or HBM bandwidth bounds a kernel.")
    parser.add_argument("--on", required=True, metavar="GEN", help="the generation: a name or alias")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--intensity", metavar="X", help="FLOP per byte moved from or to HBM")
    what.add_argument("--matmul", metavar="M,K,N", help="a product of (M, K) and (K, N), each matrix moved once")
    parser.add_argument("--dtype", default="bf16", metavar="D", help="bf16 (default), int8 or fp8")
    finish(parser, _roofline)


def _generations(args: argparse.Namespace) -> tuple[Document, int]:
    chosen = [generation(name) for name in args.names] or generations()
    return document("generations", generations=[generation_entry(chip) for chip in chosen]), 0


def _roofline(args: argparse.Namespace) -> tuple[Document, int]:
    chip = generation(args.on)
    if args.matmul is None:
        intensity = number(args.intensity, "--intensity")
        if intensity == 0:
            raise InputError(f"--intensity: {shown(args.intensity)} is zero; a number above 0 is right, such as 170")
    else:
        m, k, n = _sides(args.matmul)
        intensity = matmul_intensity(m, k, n, args.dtype)
    return roofline_document(roofline(chip, intensity, args.dtype)), 0


def _sides(matmul: str) -> list[int]:
    parts = matmul.split(",")
    if len(parts) != 3:
        raise InputError(f"--matmul: {shown(matmul)} is not three sizes; M,K,N is right, such as 1024,1024,1024")
    return [whole(part, f"--matmul {side}", most=MOST_SIDE) for side, part in zip("MKN", parts, strict=True)]
