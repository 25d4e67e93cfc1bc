"""How the site is built. Only settings that differ from the defaults, each with its reason."""

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CODE = [str(HERE / "_ext"), str(HERE.parent / "src")]
sys.path[:0] = CODE
os.environ["PYTHONPATH"] = os.pathsep.join(CODE)  # the pages' cells run in processes of their own
os.environ["JUPYTER_PATH"] = str(HERE / "_kernels")  # a kernel that does not warn on every page of its local socket
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # nor of a debugger that nobody attaches
os.environ["JAX_PLATFORMS"] = "cpu"  # the same page on every machine

from inventory import compile_inventory

from tpu_systems_audit import __version__

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "TPU Systems"
author = PROJECT["authors"][0]["name"]
copyright = f"{author}. Apache-2.0"  # without a year, which would change the bytes of every page
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",  # "Args:" and "Raises:" of docstrings
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "cli_reference",
    "course",
    "mathml",
    "rooms",
]
exclude_patterns = ["_build"]

# {eval} works inline only. A cell that fails is a warning and not an exception, so that one build
# names every bad page with its traceback; that is why only nox, where warnings are errors, builds the site.
nb_execution_mode = "inline"
nb_execution_timeout = 120
nb_execution_show_tb = True
nb_eval_name_regex = r"^[a-z_][\w.]*$"  # a sentence shows a value that its cell has named and formatted
nb_merge_streams = True  # what a cell prints line by line is one block
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3  # links to "#kv-cache"

autodoc_member_order = "bysource"  # modules are written to be read from the top
python_display_short_literal_types = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "NDArray": "NDArray"}
nitpick_ignore = [("py:class", "argparse._SubParsersAction")]  # Python documents it under no name
nitpick_ignore_regex = [  # packages whose pages are not linked
    ("py:class", r"(numpy|np|matplotlib)\..*|Axes|Figure|Ed25519PrivateKey|ArrayLike|NDArray.*|Shape|Dot")
]
# Inventories of our own: links go to the real documentation, and no build asks the network.
compile_inventory(HERE / "_inventories/python.txt", HERE / "_build/inventories/python.inv")
intersphinx_mapping = {"python": ("https://docs.python.org/3", "_build/inventories/python.inv")}

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"TPU Systems v{release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"  # else every browser asks the server for one
html_css_files = ["course.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": False,  # arrow keys belong to the reader
    "footer_icons": [{"name": "Source", "url": PROJECT["urls"]["Homepage"], "html": "Source", "class": ""}],
}
