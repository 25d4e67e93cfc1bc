"""Check your ``model.py``: ``python3 projects/tpu-systems-audit/tests/check.py --help``, from the repository's root."""

import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("check.py: Python 3.11 or newer is needed; this is " + sys.version.split()[0])
sys.dont_write_bytecode = True

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT.parents[1] / "src"), str(PROJECT / "tests")]

from stage1 import STAGE_1
from stage2 import STAGE_2

from tpu_systems_audit.checker import main

STAGES = (STAGE_1, STAGE_2)

if __name__ == "__main__":
    sys.exit(main(PROJECT, STAGES, sys.argv[1:]))
