"""Does the learner's code hold the properties: each function in a process of its own, judged from outside.

It knows no course content: a project gives its stages, and its ``check.py`` calls ``main``.
"""

from tpu_systems_audit.checker.command import main
from tpu_systems_audit.checker.run import Call, Check, Outcome, Stage, new_seed, run
from tpu_systems_audit.checker.values import Returned

__all__ = ["Call", "Check", "Outcome", "Returned", "Stage", "main", "new_seed", "run"]
