"""Run ``tpu-audit`` as ``python -m tpu_systems_audit.cli``, where no script of that name is installed."""

import sys

from tpu_systems_audit.cli.run import main

if __name__ == "__main__":
    sys.exit(main())
