"""Configuration of the documentation: ``make docs``. The build and the pages work without a network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))  # the pages describe this checkout, whatever is installed
os.environ.setdefault("MPLBACKEND", "agg")
for library in ("OMP", "OPENBLAS", "NUMBA"):  # the examples are small; threads that wait for each other only cost time
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import emvc  # noqa: E402

TUTORIAL_DATA = (Path(os.environ.get("EMVC_DATA", HERE)) / "board").is_dir()

project = "emvc"
author = "The emvc developers"
copyright = "the emvc developers"
version = release = emvc.__version__

extensions = [
    "definition_lists",
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "gallery/*.py.md5",
    "tutorials/*.py.md5",
    "**/README.*",
    "**/GALLERY_HEADER.*",
]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # they pair the quotes of default="auto" wrongly
add_module_names = False
python_use_unqualified_type_names = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 100

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_typehints = "none"  # the numpydoc sections say it in words
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Attributes", "Parameters"]  # see _ext/definition_lists.py

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "../tutorials"],
    "gallery_dirs": ["gallery", "tutorials"],
    # Tutorials run where their data are; elsewhere their pages show the code alone.
    "filename_pattern": r"\.py$" if TUTORIAL_DATA else r"examples/[^/]*\.py$",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # its pages load scripts from the network
    "show_signature": False,
    "min_reported_time": 1,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("emvc",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
}

html_theme = "furo"
html_title = f"emvc {release}"
html_static_path = ["_static"]
html_theme_options = {"light_css_variables": {"code-font-size": "77%"}}
html_css_files = ["emvc.css"]
html_show_sphinx = False
html_copy_source = False
