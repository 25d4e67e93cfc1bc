"""What XProf's overview says of the study guide's trace and of its clean counterpart, beside the audit's verdicts.

``python benchmarks/xprof_overview.py [--output FILE]`` prints the result and writes it as JSON, with versions.
"""

import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from machine import arguments, save
from xprof.convert import raw_to_tool_data

from tpu_systems_audit.traces import audit

TRACES = Path(__file__).parents[1] / "docs" / "traces"
ASKED = ("steptime_ms_average", "steptime_ms_minimum", "steptime_ms_maximum", "input_conclusion", "summary_nextstep")


def main() -> None:
    """Ask both of every trace."""
    args = arguments(__file__, __doc__, rounds=1)
    rows = [row(path) for path in sorted(TRACES.glob("*.xplane.pb"))]
    save(args.output, versions={"xprof": version("xprof")}, rows=rows)
    print(json.dumps(rows, indent=1))


def row(path: Path) -> dict:
    """Both answers on one trace; XProf gets a copy, because it keeps files beside what it reads."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        data, _ = raw_to_tool_data.xspace_to_tool_data([copy], "overview_page", {})
    told = data.decode() if isinstance(data, bytes) else data
    found = {key: value for table in json.loads(told) for key, value in table.get("p", {}).items() if key in ASKED}
    mentions = "compil" in told.lower()
    return {"trace": path.name, "overview": found, "mentions_compilation": mentions, "audit": audit(path).verdict}


if __name__ == "__main__":
    main()
