"""The commands that size: ``memory`` and ``plan``."""

import argparse
import re
from fractions import Fraction

from tpu_systems_audit.chips import generation, generations, parse_slice
from tpu_systems_audit.cli.base import Commands, Document, command, finish
from tpu_systems_audit.cli.documents import plan_document, serve_document, train_document
from tpu_systems_audit.models import Model, load
from tpu_systems_audit.sizing import (
    BASES,
    DEFAULT_BUDGET,
    DEFAULT_SEQUENCE,
    KV_DTYPES,
    OPTIMIZERS,
    POLICIES,
    REMATS,
    WEIGHT_DTYPES,
    Job,
    Policy,
    Serving,
    Training,
    answer,
    find_policy,
    policy_from_bytes,
    serve_state,
    train_state,
)
from tpu_systems_audit.units import InputError, share, shown, whole

MOST_TOKENS = 10**9


def add(commands: Commands) -> None:
    """Add ``memory`` and ``plan``."""
    memory = command(commands, "memory", "Count what training or serving keeps in HBM.")
    kinds = memory.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_memory_train(kinds)
    _add_memory_serve(kinds)
    plan = command(commands, "plan", "Find the chips needed, and the smallest slice one can order.")
    kinds = plan.add_subparsers(dest="kind", metavar="train|serve", required=True)
    _add_plan_train(kinds)
    _add_plan_serve(kinds)


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
        plans = [answer(job, chip, on)]
    else:
        chips = [generation(name) for name in args.on] if args.on else generations()
        plans = [answer(job, chip) for chip in {chip.name: chip for chip in chips}.values()]
    return plan_document(job, plans), 0 if any(plan.fits for plan in plans) else 1


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
    if re.fullmatch(r"[-+]?[._]?\d[\d._]*([eE][-+]?\d+)?", source.strip()):
        return whole(source, "parameters")
    if re.fullmatch(r"[\d.]+[bBmM]", source.strip()):
        raise InputError(f"MODEL: {shown(source)} is neither a name nor a count; write 7e9 for seven billion")
    return load(source)
