"""How Sphinx makes a site of these pages: ``make docs``, then open build/docs/index.html."""

from bandanna.version import __version__

project = "Bandanna"
author = "the Bandanna authors"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # formulas are set by a MathJax that is shipped with the site
]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build"]

# Headings get the anchors that a reader of the raw files sees, too.
myst_heading_anchors = 4

# What is not labelled is what a command prints.
highlight_language = "text"

# The reference shows what people may rely on, in the order of the source.
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_rtype = False
python_maximum_signature_line_length = 88

# Nothing is loaded from the network; docs/check_site.py makes sure of it.
html_theme = "furo"
html_title = f"Bandanna {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
