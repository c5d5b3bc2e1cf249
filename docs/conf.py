"""How Sphinx makes a site of these pages: ``make docs``, then open build/docs/index.html."""

import re
from pathlib import Path

from sphinx.application import Sphinx

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


def write_twins(app: Sphinx, error: Exception | None) -> None:
    """Put each page's Markdown beside it, and a list of all pages for programs: ``llms.txt``."""
    if error is not None or app.builder.name != "html":
        return
    source, site = Path(app.srcdir), Path(app.outdir)
    lines = [f"# {project} {release}", "", "> Differentially private bandits, in Python.", ""]
    for page in sorted(app.env.found_docs):
        text = (source / f"{page}.md").read_text("utf-8")
        twin = site / f"{page}.md"
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(text, "utf-8")
        title, _, rest = text.partition("\n")
        if not title.startswith("# "):  # a page that only includes a file
            continue
        words = re.sub(r"^```.*?^```$", "", rest, flags=re.DOTALL | re.MULTILINE)
        blocks = [block.strip() for block in words.split("\n\n")]
        text_blocks = [block for block in blocks if block and block[0] not in "|#!->"]
        about = " ".join(text_blocks[0].split()) if text_blocks else ""
        sentence = f": {about.partition('. ')[0].rstrip('.:')}." if about else ""
        lines.append(f"- [{title.lstrip('# ')}]({page}.md){sentence}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def setup(app: Sphinx) -> None:
    """Let Sphinx call what is defined here."""
    app.connect("build-finished", write_twins)
