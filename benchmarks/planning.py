"""How long ``plan`` takes over every bundled model, generation and policy at five budgets, beside one of each.

``python benchmarks/planning.py [--output FILE]`` prints the result and writes it as JSON.
The bound is the one the project promises: the whole grid in under 2 s.
"""

import statistics
import time
from fractions import Fraction
from itertools import product

from machine import arguments, save

from tpu_systems_audit.chips import generations
from tpu_systems_audit.models import load, model_names
from tpu_systems_audit.sizing import POLICIES, Training, plan_train

BUDGETS = [Fraction(tenths, 10) for tenths in (6, 7, 8, 9, 10)]
BOUND_S = 2


def main() -> None:
    """Measure and report."""
    args = arguments(__file__, __doc__, rounds=5)
    start = time.perf_counter()
    models = [load(name) for name in model_names()]
    loading_s = time.perf_counter() - start
    grids_s, ones_s = [], []
    for _ in range(args.rounds):
        ones_s.append(planned_in_s(models[:1], generations()[:1], [Fraction(4, 5)])[0])
        elapsed, count = planned_in_s(models, generations(), BUDGETS)
        grids_s.append(elapsed)
    grid_s, one_s = statistics.median(grids_s), statistics.median(ones_s)
    figures = {"plans": count, "loading_s": loading_s, "grid_s": grid_s, "bound_s": BOUND_S}
    ratio = grid_s / one_s  # to one model on one generation at one budget, under all policies
    save(args.output, rounds=args.rounds, **figures, ratio=ratio, within=loading_s + grid_s <= BOUND_S)
    print(f"{count} plans in {grid_s:.2f} s, after {loading_s:.2f} s for the models; the bound is {BOUND_S} s")
    print(f"{ratio:.0f} times one model on one generation at one budget, for {count // len(POLICIES)} times the plans")


def planned_in_s(models: list, chips: tuple, budgets: list[Fraction]) -> tuple[float, int]:
    """Plan every combination under every policy; seconds, and how many plans that were."""
    asked = list(product(models, chips, POLICIES.values(), budgets))
    start = time.perf_counter()
    for model, chip, policy, budget in asked:
        plan_train(Training(model, policy, budget=budget), chip)
    return time.perf_counter() - start, len(asked)


if __name__ == "__main__":
    main()
