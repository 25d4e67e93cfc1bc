"""What a person types, what comes back, and the exit status."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tpu_systems_audit import __version__
from tpu_systems_audit.cli import main
from tpu_systems_audit.cli.base import SCHEMA
from tpu_systems_audit.models import model_names

MODELS = Path(__file__).parents[2] / "src/tpu_systems_audit/models/bundled"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(*words: str) -> tuple[int, str, str]:
        status = main(words)
        out, err = capsys.readouterr()
        return status, out, err

    return run_


@pytest.fixture
def ask(run: Run) -> Callable[..., dict]:
    def ask_(*words: str) -> dict:
        status, out, err = run(*words, "--json")
        assert err == ""
        return json.loads(out) | {"exit": status}

    return ask_


COMMANDS = [
    ("generations",),
    ("generations", "v5e", "Trillium"),
    ("roofline", "--on", "v5e", "--intensity", "170"),
    ("roofline", "--on", "v6e", "--matmul", "1024,1024,1024", "--dtype", "int8"),
    ("memory", "train", "7e9"),
    ("memory", "train", "llama-3-8b", "--policy", "pure-bf16", "--optimizer", "adafactor"),
    ("memory", "serve", "mixtral-8x7b-v0.1", "--context", "8192", "--batch", "4", "--kv-dtype", "int8"),
    ("plan", "train", "7e9", "--on", "v5e"),
    ("plan", "train", "llama-3-70b"),
    ("plan", "train", "llama-3.1-405b", "--on", "v5e"),
    ("plan", "train", "llama-3-8b", "--slice", "v5litepod-16"),
    ("plan", "serve", "deepseek-v3", "--context", "8192", "--batch", "16"),
    ("plan", "serve", "gemma-2-9b", "--context", "8192", "--batch", "4", "--slice", "v5e:2x4"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_json_is_one_document_with_schema_and_version(words: tuple[str, ...], run: Run) -> None:
    status, out, err = run(*words, "--json")
    answer = json.loads(out)
    assert (answer["schema"], answer["version"], err) == (SCHEMA, __version__, "")
    assert status in (0, 1)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_json_a_table_of_readable_width_comes_back(words: tuple[str, ...], run: Run) -> None:
    status, out, err = run(*words)
    assert (status in (0, 1), err) == (True, "")
    assert len(out.splitlines()) >= 2
    table = [line for line in out.splitlines() if "  " in line]
    assert all(len(line) <= 120 for line in table)


def test_roofline_answers_the_study_guides_question(ask: Callable[..., dict]) -> None:
    answer = ask("roofline", "--on", "v5e", "--intensity", "170")
    assert (answer["bound"], answer["exit"]) == ("hbm", 0)
    assert answer["ridge_flop_per_byte"] == pytest.approx(240.53724053724054, rel=1e-15)
    assert answer["attainable_tflops"] == pytest.approx(139.23)


@pytest.mark.parametrize(
    ("basis", "count", "accelerator_type", "required"),
    [("peak", 9, "v5litepod-16", 104.3081283569336), ("resident", 7, "v5litepod-8", 78.2310962677002)],
)
def test_plan_answers_the_lessons_question(
    basis: str, count: int, accelerator_type: str, required: float, ask: Callable[..., dict]
) -> None:
    [plan] = ask("plan", "train", "7e9", "--on", "v5e", "--basis", basis)["plans"]
    assert plan["required_gib"] == required
    assert (plan["basis"], plan["min_chips"], plan["slice"]["accelerator_type"]) == (basis, count, accelerator_type)
    assert plan["activation_gib_per_chip"] is None is plan["margin_gib"]
    assert plan["gib_per_chip"] == required / plan["slice"]["chips"]
    assert plan["fraction_of_hbm"] == pytest.approx(plan["gib_per_chip"] / 16)


def test_without_on_every_generation_answers(ask: Callable[..., dict]) -> None:
    answer = ask("plan", "train", "7e9")
    assert [plan["generation"] for plan in answer["plans"]] == ["v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x"]


def test_exit_is_1_only_when_no_generation_fits(ask: Callable[..., dict]) -> None:
    assert ask("plan", "train", "1e12", "--on", "v5e", "--on", "v5p")["exit"] == 0
    answer = ask("plan", "train", "1e12", "--on", "v5e", "--on", "v2")
    assert answer["exit"] == 1
    for plan in answer["plans"]:
        assert plan["slice"] is plan["gib_per_chip"] is plan["fraction_of_hbm"] is None
        assert plan["fits"] is False
        assert plan["short_gib"] > 0
        assert plan["advice"]


def test_a_peak_that_does_not_exist_is_null_in_generations(ask: Callable[..., dict]) -> None:
    [entry] = ask("generations", "tpu7x")["generations"]
    assert entry["peak_tflops"]["int8"] is None is entry["ridge_flop_per_byte"]["int8"]
    assert entry["peak_tflops"]["fp8"] == 4614


def test_memory_train_counts_in_bytes(ask: Callable[..., dict]) -> None:
    answer = ask("memory", "train", "llama-2-7b")
    assert answer["parameters"] == 6738415616
    assert answer["bytes"] == {
        "weights": 4 * 6738415616, "working_copy": 2 * 6738415616,
        "gradients": 2 * 6738415616, "optimizer": 8 * 6738415616,
    }  # fmt: skip
    assert answer["peak_bytes"] == 16 * 6738415616


def test_serving_totals_hold_weights_cache_and_scales(ask: Callable[..., dict]) -> None:
    answer = ask("memory", "serve", "llama-3-8b", "--context", "8192", "--batch", "4",
                 "--weights-dtype", "int8", "--kv-dtype", "int8")  # fmt: skip
    parts = ("weights_bytes", "weights_scale_bytes", "kv_cache_bytes", "kv_scale_bytes")
    assert answer["total_bytes"] == sum(answer[part] for part in parts)
    assert answer["total_gib"] == answer["total_bytes"] / 2**30


@pytest.mark.parametrize("name", model_names())
def test_a_bundled_model_is_the_same_by_name_and_by_path(name: str, ask: Callable[..., dict]) -> None:
    by_name = ask("memory", "train", name)
    by_path = ask("memory", "train", str(MODELS / f"{name}.json"))
    assert by_name["bytes"] == by_path["bytes"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    config = json.loads((MODELS / "llama-2-7b.json").read_text())
    without = {key: value for key, value in config.items() if key != "model_type"}
    texts = {
        "truncated": json.dumps(config)[:-20],
        "nan": json.dumps(config | {"hidden_size": float("nan")}),
        "missing": json.dumps(without),
        "empty": "",
        "list": "[1, 2]",
        "unknown": json.dumps(config | {"model_type": "lama"}),
        "huge": '{"a": "' + "x" * (16 * 2**20) + '"}',
        "deep": "[" * 100_000,
        "wrong-type": json.dumps(config | {"num_hidden_layers": "32"}),
        "negative": json.dumps(config | {"vocab_size": -1}),
    }
    for name, content in texts.items():
        (tmp_path / f"{name}.json").write_text(content)
    (tmp_path / "not-utf8.json").write_bytes(b"\xff\xfe{}")
    return {path.stem: str(path) for path in tmp_path.iterdir()} | {"directory": str(tmp_path)}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("truncated", "JSON"), ("nan", "hidden_size"), ("missing", "model_type"), ("empty", "JSON"), ("list", "object"),
        ("unknown", "llama"), ("huge", "larg"), ("deep", ""), ("wrong-type", "num_hidden_layers"),
        ("negative", "vocab_size"), ("directory", "director"), ("not-utf8", "UTF-8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [("memory", "train"), ("plan", "train")])
def test_a_bad_config_is_refused_in_one_line(
    command: tuple[str, ...], name: str, says: str, files: dict[str, str], run: Run
) -> None:
    assert_refused(run(*command, files[name], "--json"), says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("roofline --on v5x --intensity 170", "did you mean v5"),
        ("roofline --on v5e --intensity 0", "above 0"),
        ("roofline --on v5e --intensity nan", "--intensity"),
        ("roofline --on v5e --intensity -3", "--intensity"),
        ("roofline --on v5e", "--intensity"),
        ("roofline --on v5e --intensity 1 --matmul 1,1,1", "not allowed"),
        ("roofline --on v5e --matmul 1,2", "M,K,N"),
        ("roofline --on v5e --matmul 1,2,x", "--matmul N"),
        ("roofline --on tpu7x --intensity 170 --dtype int8", "no int8 peak"),
        ("roofline --on v5e --intensity 170 --dtype bf8", "bf16"),
        ("memory train 1e400", "parameters"),
        ("memory train 0", "parameters"),
        ("memory train -7e9", "parameters"),
        ("memory train 1.5", "not whole"),
        ("memory train 7b", "7e9"),
        ("memory train llama-3-9b", "llama-3-8b"),
        ("memory train no/such/config.json", "no/such/config.json"),
        ("memory train .", "is a directory"),
        ("memory train ..", "is a directory"),
        ("memory train 7e9 --policy mixed", "mixed-bf16"),
        ("memory train 7e9 --optimizer adamww", "adamw"),
        ("memory train 7e9 --optimizer muon", "bare count"),
        ("memory train 7e9 --bytes-per-parameter 1,2", "2,0,2,8"),
        ("memory serve 7e9 --context 1 --batch 1", "bare count"),
        ("memory serve llama-3-8b --context -1 --batch 1", "negative"),
        ("memory serve llama-3-8b --context 0 --batch 1", "--context"),
        ("memory serve llama-3-8b --context 8192", "--batch"),
        ("memory serve llama-3-8b --context 8192 --batch 1 --kv-dtype int4", "--kv-dtype"),
        ("plan train 7e9 --budget 0", "--budget"),
        ("plan train 7e9 --budget 1.5", "--budget"),
        ("plan train 7e9 --budget nan", "--budget"),
        ("plan train 7e9 --basis average", "--basis"),
        ("plan train 7e9 --on v5e --slice v5e:4x4", "not allowed"),
        ("plan train 7e9 --slice v5e-17", "v5litepod-16"),
        ("plan train llama-3-8b --remat some", "--remat"),
        ("plan train llama-3-8b --sequence 0", "--sequence"),
        ("plan train llama-3-8b --batch-per-chip 1.5", "--batch-per-chip"),
        ("plan fly 7e9", "fly"),
        ("plan", "train"),
        ("sail", "sail"),
        ("", "COMMAND"),
        ("plan train 7e9 --bogus", "--bogus"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_be_right(words: str, says: str, run: Run) -> None:
    assert_refused(run(*words.split(), *(["--json"] if words else [])), says)


def assert_refused(answer: tuple[int, str, str], says: str) -> None:
    status, out, err = answer
    assert (status, out) == (2, "")
    assert err.startswith("tpu-audit: ")
    assert err.count("\n") == 1
    assert says in err
    assert len(err) < 400


def test_version_prints_the_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"tpu-audit {__version__}\n"


def test_a_reader_that_stops_early_sees_no_traceback() -> None:
    code = "from tpu_systems_audit.cli import main; import sys; sys.exit(main(['generations', '--json']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 0


def test_sizing_loads_neither_numpy_nor_jax() -> None:
    code = (
        "import sys, io, contextlib\nfrom tpu_systems_audit.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert main(['plan', 'train', 'llama-3-8b']) == 0\n"
        "print(sorted({'numpy', 'jax', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
