"""What a command imports only when it is asked: packages that may not be there, and functions of the user's own."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tpu_systems_audit.units import InputError, shown


def needed(package: str, extra: str = "jax") -> Any:
    """Import what only some commands need.

    Args:
        package: its name.
        extra: of this package, which brings it.

    Raises:
        InputError: when it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise InputError(f"{package}: is not installed; pip install 'tpu-systems-audit[{extra}]' brings it") from None


def named_function(name: str, flag: str) -> Callable[..., Any]:
    """Find the function that *name* stands for; the current directory is on the path.

    Args:
        name: ``module:function``.
        flag: what carries the name, for the message.

    Raises:
        InputError: when there is none, or its module does not import.
    """
    module, _, function = name.partition(":")
    right = "MODULE:FUNCTION is right, such as mydots:dot"
    if not module or not function:
        raise InputError(f"{flag}: {shown(name)} is not a function's name; {right}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except (Exception, SystemExit) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{flag}: {shown(module)} does not import ({what}); {right}") from None
    if not callable(found):
        raise InputError(f"{flag}: {shown(module)} has no function {shown(function)}; {right}")
    return found  # type: ignore[no-any-return]
