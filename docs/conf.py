"""The site: `make docs` builds it from these pages and the docstrings; warnings are errors."""

import frugal_rl

project = "Frugal RL"
author = "The Frugal RL maintainers"
release = frugal_rl.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "benchmarks/*.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
default_role = "code"
html_theme = "furo"
html_title = f"Frugal RL {release}"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
doctest_global_setup = """
import numpy as np
from gymnasium import spaces
from frugal_rl import *
"""
