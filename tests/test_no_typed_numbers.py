"""No figure in the prose of a page is typed: it comes from a cell, or it is part of a name."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    path for path in sorted(DOCS.rglob("*.md")) if not any(p.startswith("_") for p in path.relative_to(DOCS).parts)
]

# Units, from which only the first letters may follow a number without a space.
_MEASURES = (
    r"[KMGTPE]?FLOPs?(?:/s|/byte)?|FLOPS|[TG]?OPS?(?:/s)?|[KMGTP]i?B(?:/s)?|[kmgt]bytes?|bytes?(?:/s)?|bits?|[GM]bit/s|"
    r"[GMk]Hz|ns|ms|[µμu]s|s|h|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?|weeks?|milliseconds?|microseconds?|"
    r"percent|per cent|times|fold|x|B|M|T|K|thousand|million|billion|trillion"
)
_COUNTED = (
    r"chips?|hosts?|devices?|cores?|TensorCores?|slices?|tokens?|sequences?|parameters?|params?|weights|layers?|heads?|"
    r"experts?|values?|steps?|lessons?|models?|generations?|operations?"
)
_UNIT = rf"(?:[%‰×]|(?:{_MEASURES}|{_COUNTED})\b)"
# At most one word, or a name, may stand between a number and what it counts, as in "32 KV heads".
_GAP = r"[\s\u00a0\u202f~-]{0,2}"
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?[⁰¹²³⁴⁵⁶⁷⁸⁹]*"
TYPED = re.compile(
    rf"(?<![\w.])(?:{_NUMBER}{_GAP}{_UNIT}"
    rf"|{_NUMBER}[ \n](?:[A-Za-z]\w*|\0+)[ \n-](?:{_COUNTED})\b"
    r"|\d+\.\d+"
    r"|\d{1,3}(?:,\d{3})+)"
)

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
# Digits that are part of a name, each with the reason why they are no figure.
NAMES = {
    "a lesson": r"\btpu-\d\d\b",
    "a generation, or the accelerator type of a slice": r"\b(?:v\d[a-z]*|(?i:tpu)\d+x)(?:-\d+)?(?!\w|\.\d)",
    "a model, whose size is in its name": (
        r"\b(?:Llama|Qwen|Gemma|Mistral|Mixtral|Phi|DeepSeek|GPT|gpt-oss)(?:[- ]?[vV]?\d{1,2}(?:\.\d)?(?!\w|\.\d)"
        rf"(?!{_GAP}{_UNIT}))?(?:[- ]\d+(?:x\d+)?(?:\.\d+)?B\b)?"
    ),
    "a part of the course": r"\b(?i:phases?|stages?|step|lesson|part)\s\d+(?:(?:,| and| to|–)\s?\d+)*\b(?!\.\d)",
    "a version": r"\bv\d+(?:\.\d+)+\b|\bPython \d+\.\d+\b|\bApache-2\.0\b",
    "an address of a paper": r"\barXiv[: ]\d{4}\.\d{4,5}\b|\bdoi:\S+",
    "a volume, its issue and its pages": r"\b[A-Z][\w.]* \d+\(\d+\)(?::\d+(?:–\d+)?)?",
    "a date": rf"\b(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?\d{{4}}\b|\b\d{{4}}-\d\d-\d\d\b",
    "a number format": r"\b(?i:bf|fp|tf|int|uint|float|bfloat)\d+\b",
}

# Directives whose content is not read as text; the content of any other is prose.
_CODE = {"code-cell", "code-block", "code", "sourcecode", "literalinclude", "math", "raw", "mermaid"}
_READ_OPTIONS = "question|caption|alt|title"


def _hide(found: re.Match[str]) -> str:
    """Put something in the place of *found* that is no text, and keep its lines."""
    return "\0" + "\n" * found[0].count("\n") + "\0"


def _without_code(page: str) -> str:
    """Blank the front matter, code fences, and the options of directives that no reader sees."""
    page = re.sub(r"\A---\n.*?\n---\n", _hide, page, flags=re.DOTALL)
    lines, closing, code = [], [], False
    for line in page.split("\n"):
        fence = re.match(r"\s*(?!`{3,}[^`]*[^`\s][^`]*`)(`{3,}|~{3,}|:{3,})\s*(?:\{([\w-]+)\})?(.*)$", line)
        if closing and fence and fence[0].strip() == fence[1] and fence[1].startswith(closing[-1]):
            closing.pop()
            lines.append("")
            code = False
        elif code:
            lines.append("")
        elif fence:
            closing.append(fence[1])
            code = fence[2] in _CODE or (fence[2] is None and fence[1][0] != ":")
            lines.append("" if code else fence[3])
        else:
            lines.append(re.sub(rf"^\s*:(?!(?:{_READ_OPTIONS}):)[\w-]+:.*$", "", line) if closing else line)
    return "\n".join(lines)


def prose(page: str) -> str:
    """What a reader of *page* reads as text that its author typed, line by line.

    Code, results of cells, mathematics, comments and the targets of links are hidden.
    """
    text = _without_code(page)
    for hidden in (
        r"<!--.*?-->",
        r"^%.*$",
        r"\$\$.*?\$\$",
        r"\{(?:eval|math|code|download|file)\}(`+)(?:(?!\n\n).)+?(?<!`)\1(?!`)",
        r"(?<![`}])(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)",
        r"(?<!\\)\$(?!\s)(?:(?!\n\n)[^$])+?(?<!\s)\$(?!\d)",
        r"(?<=\])\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)",
        r"^\s*\[[^\]]+\]:\s+\S+",
        r"<[^<>\s]+>",
        r"https?://\S+",
    ):
        text = re.sub(hidden, _hide, text, flags=re.DOTALL | re.MULTILINE)
    return text


def typed(text: str) -> list[str]:
    """Every figure that is typed in the prose of a page in MyST Markdown, with its line."""
    read = prose(text)
    for name in NAMES.values():
        read = re.sub(name, _hide, read)
    return [
        f"line {read[: found.start()].count(chr(10)) + 1}: {' '.join(found[0].split())}"
        for found in TYPED.finditer(read)
    ]


def test_there_are_pages() -> None:
    assert len(PAGES) > 1


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_no_figure_is_typed_in_prose(path: Path) -> None:
    assert typed(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "The ridge point is 240.5 FLOP/byte.",
        "It is about 240.5, as said.",
        "A budget of 0.8 is usual.",
        "It peaks at 197 TFLOP/s.",
        "It peaks at 197TFLOP/s.",
        "HBM moves 819 GB/s.",
        "A chip has 16 GiB.",
        "A chip has 16GB.",
        "A pod has 4 TB and a core 128 MiB and 64 KiB.",
        "A parameter takes 16 bytes.",
        "A parameter takes 16\nbytes.",
        "The kernel needs 2 GFLOP.",
        "A step takes 9 ms.",
        "A step takes 9-millisecond blocks.",
        "It waited 5 µs.",
        "It waited 5 us.",
        "It waited 12 s.",
        "It waited 12 seconds, then 3 minutes.",
        "A 12-second compile block.",
        "That is 71 % of the peak.",
        "That is 71% of the peak.",
        "It is 2× as fast.",
        "It is 2 times as fast.",
        "It is 2x as fast.",
        "It takes 9 chips on 4 hosts.",
        "It takes 16 v5e chips.",
        "A context of 8,192 tokens.",
        "A context of 8,192, no more.",
        "It has 7e9 parameters.",
        "It has 7 billion weights.",
        "A 7B-parameter model.",
        "Of 13B on that slice.",
        "It has 32 layers and 8 KV heads.",
        "A GiB is 2³⁰ bytes.",
        "Llama 3 8B has 8 GiB.",
        "Llama 3 takes 16 GiB.",
        "v5e has 16 GiB.",
        "On tpu-03 it says 16 GiB.",
        "In stage 1 it is 0.8 again.",
        "arXiv 1910.02054 says 16 bytes.",
        "bf16 takes 2 bytes.",
        "{eval}`ridge` is about 240.5.",
        "`code` takes 3 ms and `more` takes nothing.",
        "$x$ is 3 ms and $y$ is not.",
        "[a chip has 16 GiB](reference/generations.md)",
        "![a chip with 16 GiB](chip.svg)",
        "| generation | HBM |\n| --- | --- |\n| v5e | 16 GiB |",
        "# A budget of 0.8",
        "- A list says 16 GiB.",
        "> A quotation says 16 GiB.",
        ":::{predict} x\n:question: Is 170 FLOP/byte enough?\n\nYes.\n:::",
        ":::{predict} x\n:question: Is it?\n\nNo: 16 GiB.\n:::",
        ":::{admonition} It has 16 GiB\n:class: note\n\nIt has.\n:::",
        "```{note}\nA chip has 16 GiB.\n```",
        "```{code-cell} python\nx = 1\n```\nA chip has 16 GiB.\n```console\n$ x\n```",
        ":::{figure} x.svg\n:alt: A chip with 16 GiB\n\nCaption.\n:::",
        "::::{grid} 1 1 2 2\n:::{grid-item-card} One\n16 GiB.\n:::\n::::\n",
        "chip\n  Has 16 GiB.",
        "See {term}`the 16 GiB <HBM>`.",
    ],
)
def test_a_typed_figure_is_found(text: str) -> None:
    assert typed(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "It says {eval}`ridge` FLOP/byte, {eval}`share` % and {eval}`chips` chips.",
        "It says {eval}`f'{x} 16 GiB'`.",
        "Llama 3 8B, Llama 2 13B, Llama 3.1 405B, Mixtral 8x7B, Qwen2.5 7B and Gemma 2 9B on TPU v5e.",
        "Llama 3 8B's cache; Llama 3 shares each head.",
        "See tpu-03 and [tpu-06](lessons/tpu-06.md).",
        "On v5e, v5p, v6e, v2-8, v5litepod-16, TPU7x and tpu7x-8. As on v5p.\nToken by token on v4.",
        "Chips of v5e, and Llama 3. Tokens follow.",
        "Phase 21; Phases 07, 08, 09, 13, 15, 16, 17 and 18; stage 1, step 3 of 3.",
        "ZeRO, arXiv 1910.02054, version of May 2020; November 2019; 2026-05-01; 3 May 2020; CACM 52(4):65–76.",
        "Revision v0.7.0 needs Python 3.11 or newer, under Apache-2.0.",
        "bf16, int8, fp32, BF16/INT8, bfloat16 tokens and float32 values.",
        "JAX sees two devices on each chip, and five steps follow.",
        "A chip of `16 GiB` takes `min_chips(x, y, budget=0.8)` and ``a `0.8` b``.",
        "The cache is $2 \\times 8$ GiB, and\n\n$$ t \\ge 0.8 \\text{ ms} $$\n",
        "{math}`0.8` and <https://example.com/16GiB> and https://example.com/0.8/x.",
        "[text](https://example.com/v0.8/16-GiB) ![alt](fig-0.8.svg)",
        "[x]: https://example.com/0.8",
        "---\nfile_format: mystnb\nversion: 0.8\n---\n\nText.",
        "```{code-cell} python\n:tags: [hide-input]\nx = 0.8 # 16 GiB\n```",
        "```console\n$ tpu-audit --budget 0.8\n```",
        "~~~\n16 GiB\n~~~",
        "````\n```\n16 GiB\n```\n16 GiB\n````",
        ":::{predict} x\n:question: Why?\n\n```{code-cell} python\nx = 0.8\n```\nBecause.\n:::",
        ":::{figure} x.svg\n:width: 80%\n\nCaption.\n:::",
        "% A comment: 16 GiB\n\n<!-- 16 GiB\n0.8 -->",
        "| status | meaning |\n| --- | --- |\n| 130 | interrupted |",
        "Exit status 0: all passed. 1: something failed. 2: nothing could be checked.",
        "::::{grid} 1 1 2 2\n:gutter: 3\n::::",
        "1. First.\n2. Second.",
    ],
)
def test_a_name_or_a_result_is_not_taken_for_a_typed_figure(text: str) -> None:
    assert typed(text) == []


def test_a_typed_figure_is_named_with_its_line() -> None:
    page = "---\nx: 1\n---\n\n```{code-cell} python\nx\n```\n\n$$\n0.8\n$$\n\nA chip has 16 GiB\nand 0.5.\n"
    assert typed(page) == ["line 13: 16 GiB", "line 14: 0.5"]
