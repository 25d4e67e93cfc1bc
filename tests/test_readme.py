"""What the README shows is what its commands print."""

import re
from pathlib import Path

import pytest

from tpu_systems_audit.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n\$ tpu-audit (.+)\n([^$]*?)```$", README, re.MULTILINE)


def test_the_readme_shows_an_answer_on_a_real_configuration() -> None:
    assert any("config" in command or ".json" in command for command, _ in SHOWN)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_what_the_readme_shows(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(command.split()) == 0
    assert capsys.readouterr().out == output


def test_the_readme_leads_with_set_up_then_the_learners_lines_then_the_engineers() -> None:
    commands = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
    check = "python3 projects/tpu-systems-audit/tests/check.py"
    assert commands[:4] == [
        "python3 noxfile.py -s docs",
        "python3 noxfile.py -s check",
        f"{check} --start",
        f"{check} --stage all --impl projects/tpu-systems-audit/work/model.py",
    ]
    assert commands[4] == "python3 -m pip install ."
