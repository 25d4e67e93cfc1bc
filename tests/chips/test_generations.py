"""Every figure has a source and a date; every slice can be ordered."""

import tomllib
from pathlib import Path

import pytest

from tpu_systems_audit.chips import generation, generations, parse_slice, ridge_point, sources
from tpu_systems_audit.chips.generations import DATA
from tpu_systems_audit.units import InputError

RIDGES = {"v2": 65.7, "v3": 136.7, "v4": 229.2, "v5e": 240.5, "v5p": 166.0, "v6e": 560.4, "tpu7x": 312.6}


def test_every_figure_names_a_source_with_a_date_and_an_address() -> None:
    for chip in generations():
        for name, figure in chip.figures.items():
            source = sources()[figure.source]
            assert figure.date == source["date"], (chip.name, name)
            assert source["url"].startswith("https://")
            assert all(key in sources() for _, key, _ in figure.others)


def test_no_source_stands_in_the_file_unused() -> None:
    text = DATA.read_text()
    assert [key for key in tomllib.loads(text)["sources"] if f'source = "{key}"' not in text] == []


@pytest.mark.parametrize(("name", "ridge"), RIDGES.items())
def test_the_bf16_ridge_point_is_the_published_one(name: str, ridge: float) -> None:
    assert round(float(ridge_point(generation(name))), 1) == ridge


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("v5litepod", "v5e"), ("TPU v5 lite", "v5e"), ("TRILLIUM", "v6e"), ("tpu  v6 LITE", "v6e"), ("TPU v5", "v5p"),
        ("Ironwood", "tpu7x"), ("v7x", "tpu7x"), ("TPU7x", "tpu7x"), ("TPU v4", "v4"), ("v2", "v2"), ("TPU v3", "v3"),
    ],
)  # fmt: skip
def test_a_generation_answers_to_its_aliases_in_any_case(alias: str, name: str) -> None:
    assert generation(alias).name == name


def test_no_two_generations_share_a_name() -> None:
    labels = [label for g in generations() for label in {g.name, g.device_kind.lower(), *g.aliases}]
    assert len(labels) == len(set(labels))


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(InputError, match="'v5x' is unknown, did you mean v5"):
        generation("v5x")


@pytest.mark.parametrize(
    ("text", "chips", "hosts", "accelerator_type"),
    [
        ("v5litepod-1", 1, 1, "v5litepod-1"), ("v5e:2x4", 8, 1, "v5litepod-8"), ("v5e:4x2", 8, 1, "v5litepod-8"),
        ("v5litepod-16", 16, 4, "v5litepod-16"), ("v5litepod-256", 256, 64, "v5litepod-256"),
        ("v6e-8", 8, 1, "v6e-8"), ("v6e:4x4", 16, 4, "v6e-16"), ("v5p-8", 4, 1, "v5p-8"), ("v5p-16", 8, 2, "v5p-16"),
        ("v5p:16x16x24", 6144, 1536, "v5p-12288"), ("v4-8", 4, 1, "v4-8"), ("v4:16x16x16", 4096, 1024, "v4-8192"),
        ("v2-8", 4, 1, "v2-8"), ("v3-32", 16, 4, "v3-32"), ("v3-2048", 1024, 256, "v3-2048"),
        ("tpu7x-8", 4, 1, "tpu7x-8"), ("Ironwood:4x4x8", 128, 32, "tpu7x-256"),
        ("v5e-8", 8, 1, "v5litepod-8"), ("v7x-2048", 1024, 256, "tpu7x-2048"), ("Trillium-8", 8, 1, "v6e-8"),
        ("v5p:4x8x68", 2176, 544, "v5p-4352"), ("v5p-4352", 2176, 544, "v5p-4352"), ("v4:4x4x12", 192, 48, "v4-384"),
    ],
)  # fmt: skip
def test_a_slice_is_named_as_it_is_ordered(text: str, chips: int, hosts: int, accelerator_type: str) -> None:
    _, found = parse_slice(text)
    assert (found.chips, found.hosts, found.accelerator_type) == (chips, hosts, accelerator_type)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("v5e-7", "v5litepod-8"),
        ("v5litepod-7", "v5litepod-8"), ("v7x-2047", "called tpu7x-2048, tpu7x-1920"),
        ("v5e:3x3", "2x4"), ("v5p:8x8x21", "2x2x1"),
        ("8", "v5litepod-16"), ("", "v5litepod-16"), ("v5p-17920", "v5p-12288"), ("v9:2x2", "v5e"),
    ],
)  # fmt: skip
def test_a_slice_nobody_can_order_is_refused_with_a_right_one(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint) as refusal:
        parse_slice(text)
    assert "\n" not in str(refusal.value)


def test_slices_grow_and_tpu7x_reaches_its_pod() -> None:
    for chip in generations():
        sizes = [s.chips for s in chip.slices]
        assert sizes == sorted(sizes)
    assert generation("tpu7x").slices[-1].chips == 9216
    assert all(int(side) % 4 == 0 for s in generation("tpu7x").slices[4:] for side in s.topology.split("x"))


LISTED = tomllib.loads((Path(__file__).parents[1] / "cases" / "slices.toml").read_text(encoding="utf-8"))


def test_the_slices_of_v5p_are_those_that_launch_tools_list() -> None:
    ours = [[s.accelerator_type, s.topology, s.chips, s.hosts] for s in generation("v5p").slices]
    assert ours == LISTED["v5p"]


def test_the_slices_of_v4_are_those_that_launch_tools_list_and_the_whole_pod() -> None:
    ours = [[s.accelerator_type, s.topology, s.chips, s.hosts] for s in generation("v4").slices]
    assert ours == [*LISTED["v4"], ["v4-8192", "16x16x16", 4096, 1024]]


def test_a_slice_says_its_devices_and_what_its_name_leaves_open() -> None:
    found = {text: parse_slice(text)[1] for text in ("tpu7x-2048", "v5litepod-8", "v3-8", "v5p-1024", "v6e-8")}
    assert {text: each.devices for text, each in found.items()} == {
        "tpu7x-2048": 2048, "v5litepod-8": 8, "v3-8": 8, "v5p-1024": 512, "v6e-8": 8,
    }  # fmt: skip
    assert found["tpu7x-2048"].topology == "8x8x16"
    assert all(topology in found["tpu7x-2048"].note for topology in ("4x4x64", "4x8x32", "8x8x16"))
    assert "one host" in found["v5litepod-8"].note and "two hosts" in found["v5litepod-8"].note
    assert found["v3-8"].note == found["v5p-1024"].note == ""


def test_usable_hbm_is_counted_per_device() -> None:
    assert float(generation("v3").usable_hbm_bytes / 2**30) == pytest.approx(2 * 15.48)
    assert generation("v5p").usable_hbm_bytes > generation("v5p").hbm_bytes, "usable may exceed nominal"
