"""XProf opens the traces that the generator writes, and says of both what the lesson shows."""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "docs/traces"
RECORDED = json.loads((ROOT / "benchmarks/results/xprof_overview.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", RECORDED["rows"], ids=lambda row: row["trace"])
def test_xprof_says_of_a_trace_what_was_recorded(row: dict, tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="xprof has wheels for Linux on x86-64 only")
    copy = shutil.copy(TRACES / row["trace"], tmp_path)
    told, _ = convert.xspace_to_tool_data([str(copy)], "overview_page", {})
    text = told.decode() if isinstance(told, bytes) else told
    found = {key: value for table in json.loads(text) for key, value in table.get("p", {}).items()}
    assert {key: found[key] for key in row["overview"]} == row["overview"]
    assert ("compil" in text.lower()) == row["mentions_compilation"]
