"""The sizing commands: ``generations``, ``roofline``, ``memory`` and ``plan``."""

import argparse
import re
from fractions import Fraction

from tpu_systems_audit.activations import REMATS
from tpu_systems_audit.capacity import Job, plan_job
from tpu_systems_audit.cli_base import Commands, command, finish
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
    POLICIES,
    WEIGHT_DTYPES,
    Policy,
    find_policy,
    policy_from_bytes,
    serve_state,
    train_state,
)
from tpu_systems_audit.optimizers import OPTIMIZERS
from tpu_systems_audit.plan import BASES, DEFAULT_BUDGET, DEFAULT_SEQUENCE, Serving, Training
from tpu_systems_audit.roofline import matmul_intensity, roofline
from tpu_systems_audit.shapes import Model
from tpu_systems_audit.transformer import load
from tpu_systems_audit.units import InputError, number, share, shown, whole

MOST_SIDE = 10**9
MOST_TOKENS = 10**9


def add(commands: Commands) -> None:
    """Add the sizing commands."""
    _add_generations(commands)
    _add_roofline(commands)
    memory = command(commands, "memory", "Count what training or serving keeps in HBM.")
    kinds = memory.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_memory_train(kinds)
    _add_memory_serve(kinds)
    plan = command(commands, "plan", "Find the chips needed, and the smallest slice one can order.")
    kinds = plan.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_plan_train(kinds)
    _add_plan_serve(kinds)


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


def _add_model(parser: argparse.ArgumentParser, bare_count: bool) -> None:
    count = ", or a whole count such as 7e9" if bare_count else ""
    parser.add_argument("model", metavar="MODEL", help=f"a bundled name, the path of a config.json{count}")


def _add_policy(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    names = ", ".join(POLICIES)
    which.add_argument("--policy", default="mixed-bf16", metavar="P", help=f"{names} (default mixed-bf16)")
    which.add_argument("--bytes-per-parameter", metavar="W,C,G,M", help="weights, working copy, gradients, moments")
    parser.add_argument("--optimizer", default="adamw", metavar="O", help=f"{', '.join(OPTIMIZERS)} (default adamw)")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--context", required=True, metavar="T", help="tokens held per sequence")
    parser.add_argument("--batch", required=True, metavar="B", help="sequences held at once")
    for flag, dtypes in (("--weights-dtype", WEIGHT_DTYPES), ("--kv-dtype", KV_DTYPES)):
        parser.add_argument(flag, default="bf16", metavar="D", help=f"{', '.join(dtypes)} (default bf16)")


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", default="0.8", metavar="F", help="share of nominal HBM to use (default 0.8)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--on", action="append", metavar="GEN", help="a generation; repeatable; all when left out")
    where.add_argument("--slice", metavar="SLICE", help="ask what fits on this one: v5e:4x4 or v5litepod-16")


def _add_memory_train(kinds: Commands) -> None:
    parser = command(kinds, "train", "Count weights, working copy, gradients and optimizer state.")
    _add_model(parser, bare_count=True)
    _add_policy(parser)
    finish(parser, _memory_train)


def _add_memory_serve(kinds: Commands) -> None:
    parser = command(kinds, "serve", "Count weights and KV cache.")
    _add_model(parser, bare_count=False)
    _add_serving(parser)
    finish(parser, _memory_serve)


def _add_plan_train(kinds: Commands) -> None:
    parser = command(kinds, "train", "Plan a training run.")
    _add_model(parser, bare_count=True)
    _add_policy(parser)
    parser.add_argument("--basis", default="peak", metavar="B", help=f"{' or '.join(BASES)} (default peak)")
    default = str(DEFAULT_SEQUENCE)
    parser.add_argument("--sequence", default=default, metavar="S", help=f"tokens per sequence (default {default})")
    parser.add_argument("--batch-per-chip", default="1", metavar="B", help="sequences per chip (default 1)")
    parser.add_argument("--remat", default="full", metavar="R", help=f"{' or '.join(REMATS)} (default full)")
    _add_where(parser)
    finish(parser, _plan_train)


def _add_plan_serve(kinds: Commands) -> None:
    parser = command(kinds, "serve", "Plan a serving job.")
    _add_model(parser, bare_count=False)
    _add_serving(parser)
    _add_where(parser)
    finish(parser, _plan_serve)


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


def _serving(args: argparse.Namespace, budget: Fraction = DEFAULT_BUDGET) -> Serving:
    model = _model_or_count(args.model)
    if isinstance(model, int):
        raise InputError(f"MODEL: {shown(args.model)} is a bare count; serving needs layers and heads, so name a model")
    context = whole(args.context, "--context", most=MOST_TOKENS)
    batch = whole(args.batch, "--batch", most=MOST_TOKENS)
    return Serving(model, context, batch, args.weights_dtype, args.kv_dtype, budget)


def _policy(args: argparse.Namespace) -> Policy:
    return policy_from_bytes(args.bytes_per_parameter) if args.bytes_per_parameter else find_policy(args.policy)


def _model_or_count(source: str) -> Model | int:
    """A bare count where the text is a number, else a model by its name or path."""
    if re.fullmatch(r"[-+]?[\d._]+([eE][-+]?\d+)?", source.strip()):
        return whole(source, "parameters")
    if re.fullmatch(r"[\d.]+[bBmM]", source.strip()):
        raise InputError(f"MODEL: {shown(source)} is neither a name nor a count; write 7e9 for seven billion")
    return load(source)
