"""What came back from a learner's process, read without trusting it, and how it is shown."""

from dataclasses import dataclass

MOST_SHOWN = 80


@dataclass(frozen=True)
class Returned:
    """What a learner's function returned: the kind of value, the value, and how it is shown."""

    kind: str  # int float str bool none tuple bytes other
    value: object
    shown: str


def decode(text: str) -> Returned:
    """Read what ``worker.encode`` wrote.

    Args:
        text: an encoded value.

    Raises:
        ValueError: when it is none.

    >>> decode("i10").value, decode("b1").kind, decode("t(i1,f0x1.8p+0)").value
    (16, 'bool', (1, 1.5))
    """
    kind, rest = text[:1], text[1:]
    match kind:
        case "b" if rest in ("0", "1"):
            return Returned("bool", rest == "1", f"{rest == '1'}")
        case "n" if not rest:
            return Returned("none", None, "None; did you forget return?")
        case "i":
            whole = int(rest, 16)
            return Returned("int", whole, cut(f"{whole}"))
        case "h":
            return Returned("other", None, f"a whole number of {int(rest)} bits")
        case "f":
            return Returned("float", float.fromhex(rest), repr(float.fromhex(rest)))
        case "s":
            return _text(rest)
        case "y":
            return Returned("bytes", bytes.fromhex(rest), "")  # of a harness; who judges it says what came back
        case "t" if rest[:1] == "(" and rest[-1:] == ")":
            parts = [decode(part) for part in rest[1:-1].split(",") if part]
            return Returned(
                "tuple", tuple(part.value for part in parts), f"({', '.join(part.shown for part in parts)})"
            )
        case "o":
            return Returned("other", None, f"a value of type {clean(bytes.fromhex(rest).decode('utf-8', 'replace'))}")
    raise ValueError("not an encoded value")


def _text(rest: str) -> Returned:
    length, colon, data = rest.partition(":")
    if not colon:
        raise ValueError("not an encoded text")
    start = bytes.fromhex(data).decode("utf-8", "replace")
    if len(start) == int(length):
        return Returned("str", start, cut(repr(start)))
    return Returned("other", None, f"{cut(repr(start))} ({int(length)} characters)")


def clean(text: str) -> str:
    r"""Escape what a terminal would act on, and put lines on one.

    >>> clean("a\x1b[2Jb\nc")
    'a\\x1b[2Jb ⏎ c'
    """
    return " ⏎ ".join("".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in text.split("\n"))


def cut(text: str, width: int = MOST_SHOWN) -> str:
    """Shorten *text* to *width* characters, and show that it was."""
    return text if len(text) <= width else f"{text[:width]}…"
