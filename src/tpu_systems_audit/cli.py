"""The command line, ``tpu-audit``: text in, one document out, as a table or as JSON.

Exit status: 0 done, 1 the answer is no, 2 the input was wrong (one line on stderr, nothing on stdout).
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from tpu_systems_audit import __version__
from tpu_systems_audit.activations import REMATS
from tpu_systems_audit.capacity import Job, plan_job
from tpu_systems_audit.documents import (
    Document,
    document,
    generation_entry,
    plan_document,
    roofline_document,
    serve_document,
    train_document,
)
from tpu_systems_audit.generations import generation, generations, parse_slice
from tpu_systems_audit.memory import (
    KV_DTYPES,
    OPTIMIZERS,
    POLICIES,
    WEIGHT_DTYPES,
    Policy,
    find_policy,
    policy_from_bytes,
    serve_state,
    train_state,
)
from tpu_systems_audit.plan import BASES, DEFAULT_SEQUENCE, Serving, Training
from tpu_systems_audit.report import text
from tpu_systems_audit.roofline import matmul_intensity, roofline
from tpu_systems_audit.shapes import Model
from tpu_systems_audit.transformer import load
from tpu_systems_audit.units import InputError, number, share, shown, whole

MOST_SIDE = 10**9
MOST_TOKENS = 10**9


class Parser(argparse.ArgumentParser):
    """An argument parser whose every complaint is one line."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        # Newer Pythons take -7e9 for a value, older ones for an unknown flag; only as a value can it be refused well.
        self._negative_number_matcher = re.compile(r"-[\d.]")

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise InputError(" ".join(message.split()))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; the site's reference page is made from it.

    >>> build_parser().prog
    'tpu-audit'
    """
    parser = Parser(prog="tpu-audit", description="Size TPU memory and find what bounds a kernel.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_generations(commands)
    _add_roofline(commands)
    memory = _add(commands, "memory", "Count what training or serving keeps in HBM.")
    kinds = memory.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_memory_train(kinds)
    _add_memory_serve(kinds)
    plan = _add(commands, "plan", "Find the chips needed, and the smallest slice one can order.")
    kinds = plan.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_plan_train(kinds)
    _add_plan_serve(kinds)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tpu-audit`` and return its exit status.

    Args:
        argv: the arguments; those of the process when None.
    """
    try:
        args = build_parser().parse_args(argv)
        answer, status = args.run(args)
    except InputError as error:
        print(f"tpu-audit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        print(json.dumps(answer, indent=1, allow_nan=False) if args.json else text(answer), flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _add(commands: argparse._SubParsersAction, name: str, summary: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)


def _finish(parser: argparse.ArgumentParser, run: object) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=run)


def _add_generations(commands: argparse._SubParsersAction) -> None:
    parser = _add(commands, "generations", "Show TPU generations: figures, ridge points, slices and sources.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a name or alias, such as v5e or Trillium; all when left out")
    _finish(parser, _generations)


def _add_roofline(commands: argparse._SubParsersAction) -> None:
    parser = _add(commands, "roofline", "Tell whether arithmetic or HBM bandwidth bounds a kernel.")
    parser.add_argument("--on", required=True, metavar="GEN", help="the generation: a name or alias")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--intensity", metavar="X", help="FLOP per byte moved from or to HBM")
    what.add_argument("--matmul", metavar="M,K,N", help="a product of (M, K) and (K, N), each matrix moved once")
    parser.add_argument("--dtype", default="bf16", metavar="D", help="bf16 (default), int8 or fp8")
    _finish(parser, _roofline)


def _add_model(parser: argparse.ArgumentParser, bare_count: bool) -> None:
    count = ", or a whole count such as 7e9" if bare_count else ""
    parser.add_argument("model", metavar="MODEL", help=f"a bundled name, the path of a config.json{count}")


def _add_policy(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--policy", default="mixed-bf16", metavar="P", help=f"{', '.join(POLICIES)} (default mixed-bf16)")
    which.add_argument("--bytes-per-parameter", metavar="W,C,G,M", help="weights, working copy, gradients, moments")
    parser.add_argument("--optimizer", default="adamw", metavar="O", help=f"{', '.join(OPTIMIZERS)} (default adamw)")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--context", required=True, metavar="T", help="tokens held per sequence")
    parser.add_argument("--batch", required=True, metavar="B", help="sequences held at once")
    parser.add_argument("--weights-dtype", default="bf16", metavar="D", help=f"{', '.join(WEIGHT_DTYPES)} (default bf16)")
    parser.add_argument("--kv-dtype", default="bf16", metavar="D", help=f"{', '.join(KV_DTYPES)} (default bf16)")


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", default="0.8", metavar="F", help="share of nominal HBM that may be used (default 0.8)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--on", action="append", metavar="GEN", help="a generation; repeatable; all when left out")
    where.add_argument("--slice", metavar="SLICE", help="ask what fits on this one: v5e:4x4 or v5litepod-16")


def _add_memory_train(kinds: argparse._SubParsersAction) -> None:
    parser = _add(kinds, "train", "Count weights, working copy, gradients and optimizer state.")
    _add_model(parser, bare_count=True)
    _add_policy(parser)
    _finish(parser, _memory_train)


def _add_memory_serve(kinds: argparse._SubParsersAction) -> None:
    parser = _add(kinds, "serve", "Count weights and KV cache.")
    _add_model(parser, bare_count=False)
    _add_serving(parser)
    _finish(parser, _memory_serve)


def _add_plan_train(kinds: argparse._SubParsersAction) -> None:
    parser = _add(kinds, "train", "Plan a training run.")
    _add_model(parser, bare_count=True)
    _add_policy(parser)
    parser.add_argument("--basis", default="peak", metavar="B", help=f"{' or '.join(BASES)} (default peak)")
    parser.add_argument("--sequence", default=str(DEFAULT_SEQUENCE), metavar="S", help="tokens per sequence (default 2048)")
    parser.add_argument("--batch-per-chip", default="1", metavar="B", help="sequences per chip (default 1)")
    parser.add_argument("--remat", default="full", metavar="R", help=f"{' or '.join(REMATS)} (default full)")
    _add_where(parser)
    _finish(parser, _plan_train)


def _add_plan_serve(kinds: argparse._SubParsersAction) -> None:
    parser = _add(kinds, "serve", "Plan a serving job.")
    _add_model(parser, bare_count=False)
    _add_serving(parser)
    _add_where(parser)
    _finish(parser, _plan_serve)


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


def _memory_train(args: argparse.Namespace) -> tuple[Document, int]:
    model = _model_or_count(args.model)
    return train_document(model, train_state(model, _policy(args), args.optimizer)), 0


def _memory_serve(args: argparse.Namespace) -> tuple[Document, int]:
    job = _serving(args)
    state = serve_state(job.model, job.context, job.batch, job.weights_dtype, job.kv_dtype)
    return serve_document(job.model, state), 0


def _plan_train(args: argparse.Namespace) -> tuple[Document, int]:
    job = Training(
        model=_model_or_count(args.model),
        policy=_policy(args),
        optimizer=args.optimizer,
        sequence=whole(args.sequence, "--sequence", most=MOST_TOKENS),
        batch_per_chip=whole(args.batch_per_chip, "--batch-per-chip", most=MOST_TOKENS),
        remat=args.remat,
        basis=args.basis,
        budget=share(args.budget, "--budget"),
    )
    return _planned(job, args)


def _plan_serve(args: argparse.Namespace) -> tuple[Document, int]:
    return _planned(_serving(args, share(args.budget, "--budget")), args)


def _planned(job: Job, args: argparse.Namespace) -> tuple[Document, int]:
    if args.slice is not None:
        chip, on = parse_slice(args.slice)
        plans = [plan_job(job, chip, on)]
    else:
        on = None
        chips = [generation(name) for name in args.on] if args.on else generations()
        plans = [plan_job(job, chip) for chip in {chip.name: chip for chip in chips}.values()]
    return plan_document(job, plans, on), 0 if any(plan.fits for plan in plans) else 1


def _serving(args: argparse.Namespace, *budget: object) -> Serving:
    model = _model_or_count(args.model)
    if isinstance(model, int):
        raise InputError(f"MODEL: {shown(args.model)} is a bare count, and serving needs layers and heads; name a model")
    context = whole(args.context, "--context", most=MOST_TOKENS)
    batch = whole(args.batch, "--batch", most=MOST_TOKENS)
    return Serving(model, context, batch, args.weights_dtype, args.kv_dtype, *budget)


def _policy(args: argparse.Namespace) -> Policy:
    return policy_from_bytes(args.bytes_per_parameter) if args.bytes_per_parameter else find_policy(args.policy)


def _model_or_count(source: str) -> Model | int:
    """A bare count where the text is a number, else a model by its name or path."""
    if re.fullmatch(r"[-+]?[\d._]+([eE][-+]?\d+)?", source.strip()):
        return whole(source, "parameters")
    if re.fullmatch(r"[\d.]+[bBmM]", source.strip()):
        raise InputError(f"MODEL: {shown(source)} is neither a name nor a count; write 7e9 for seven billion parameters")
    return load(source)


if __name__ == "__main__":
    sys.exit(main())
