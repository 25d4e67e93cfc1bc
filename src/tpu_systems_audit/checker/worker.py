"""What runs in the learner's process: load one file, call one function, send back what it returns.

Started by ``process`` as ``python worker.py REQUESTS ANSWERS MEMORY_BYTES FILE HARNESS FUNCTION…``.
A HARNESS calls the function where plain values do not do: for arrays, or to watch what is called in what order.
It knows no expected value, so nothing in this process is worth reading or patching.
An answer is one line: a word, then texts in hexadecimal, separated by tabs.
"""

import builtins
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import decode_source
from io import FileIO
from marshal import loads  # needs no builtin that the learner can have patched
from pathlib import Path
from types import ModuleType

# The functions below keep builtins of their own: a learner's file that patches the builtins changes itself only.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

MOST_TEXT = 400
MOST_BITS = 4096
MOST_VALUES = 16
MOST_BYTES = 96 * 1024


def encode(value: object, inner: bool = False) -> str:
    """Write a value so that its type and every bit of it survive, and no method of its own is called.

    Args:
        value: what the learner's function returned.
        inner: whether it stands inside a tuple; of a tuple in a tuple only the type is named.

    >>> encode((7, 0.5, "hbm"))
    't(i7,f0x1.0000000000000p-1,s3:68626d)'
    """
    kind = type(value)
    if value is True or value is False:
        return f"b{value:d}"
    if value is None:
        return "n"
    if issubclass(kind, int):
        bits = int.bit_length(value)  # type: ignore[arg-type]
        return f"h{bits}" if bits > MOST_BITS else "i" + int.__format__(value, "x")  # type: ignore[arg-type]
    if issubclass(kind, float):
        return "f" + float.hex(value)  # type: ignore[arg-type]
    if issubclass(kind, str):
        start = str.__getitem__(value, slice(MOST_TEXT))  # type: ignore[index]
        return f"s{str.__len__(value)}:{start.encode('utf-8', 'replace').hex()}"  # type: ignore[arg-type]
    if kind is bytes and len(value) <= MOST_BYTES and not inner:  # type: ignore[arg-type]
        return "y" + bytes.hex(value)  # type: ignore[arg-type]
    if kind in (tuple, list) and not inner and len(value) <= MOST_VALUES:  # type: ignore[arg-type]
        return f"t({','.join([encode(part, True) for part in value])})"  # type: ignore[attr-defined]
    return "o" + _name(kind).encode("utf-8", "replace").hex()


def tell(word: str, *texts: str) -> bytes:
    r"""Write one answer.

    >>> tell("raised", "A")
    b'raised\t41\n'
    """
    return "\t".join([word, *(text.encode("utf-8", "replace").hex() for text in texts)]).encode() + b"\n"


def main() -> None:
    """Load the file, then answer each request until the parent ends this process."""
    requests, answers, memory_bytes = map(int, sys.argv[1:4])
    path, harness, functions = sys.argv[4], sys.argv[5], sys.argv[6:]
    _limit(memory_bytes)
    write, flush = os.write, sys.stdout.flush  # bound before the learner can patch them

    def answer(word: str, *texts: str) -> None:
        data = tell(word, *texts)
        while data:
            data = data[write(answers, data) :]

    answer("started")
    call = _harness(harness, functions[0]) if harness else None
    module = ModuleType("model")
    module.__file__ = path
    sys.modules["model"] = module
    word, *texts = _attempt(path, lambda: _load(path, module))
    if word != "value":
        answer(word, *texts)
        return
    names = vars(module)
    function = names.get(functions[0])
    if functions[0] not in names:
        answer("missing", "one" if any(name in names for name in functions) else "all")
        return
    if not callable(function):
        answer("uncallable")
        return
    answer("ready")
    for request in FileIO(requests):
        arguments = loads(bytes.fromhex(request.decode()))
        if call:
            arguments = (function, *arguments)
        reply = _attempt(path, lambda arguments=arguments: encode((call or function)(*arguments)))  # type: ignore[misc]
        with suppress(OSError, ValueError):  # the learner may have closed it
            flush()
        answer(*reply)


def _limit(memory_bytes: int) -> None:
    """Hold this process to a size, where the system can; no core files."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, OSError, ValueError):
        pass


def _harness(path: str, name: str) -> Callable[..., object]:
    """Load a harness before the learner can patch anything, and let it prepare for one function."""
    module = ModuleType("harness")
    _load(path, module)
    prepared: Callable[..., object] = module.prepare(name)
    return prepared


def _load(path: str, module: ModuleType) -> str:
    """Run the learner's file, decoded as Python itself reads it."""
    source = decode_source(Path(path).read_bytes())
    exec(compile(source, path, "exec"), vars(module))
    return ""


def _attempt(path: str, action: Callable[[], str]) -> tuple[str, ...]:
    """Do it, and describe whatever it raises, an exit and an interrupt too."""
    try:
        return "value", action()
    except MemoryError:
        return ("memory",)  # nothing is made here: there is no room; the traceback, and all it holds, is dropped first
    except BaseException as error:
        return _describe(path, error)


def _describe(path: str, error: BaseException) -> tuple[str, ...]:
    """Say the type of an error, its text and its line in the learner's file."""
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = f"{trace.tb_lineno}"
        trace = trace.tb_next
    syntax = isinstance(error, SyntaxError) and error.filename == path
    if syntax:
        line = f"{error.lineno}"  # type: ignore[attr-defined]
    try:
        text = str(error.msg if syntax else error)  # type: ignore[attr-defined]
    except BaseException:
        text = "(its text cannot be shown)"
    word = "todo" if isinstance(error, NotImplementedError) else "raised"
    return word, _name(type(error)), str.__getitem__(text, slice(MOST_TEXT)), line


def _name(kind: type) -> str:
    """The name of a type, whatever its metaclass says."""
    name: str = type.__dict__["__name__"].__get__(kind)
    return name


if __name__ == "__main__":
    main()
