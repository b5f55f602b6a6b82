"""Settings of Sphinx for the site. scripts/docs/build.py collects the pages and runs Sphinx."""

from datetime import date

from docstring_form import is_not_for_users, short_signature, to_restructured_text
from sphinx.application import Sphinx

import pointset

project = "pointset"
author = "the pointset authors"
copyright = f"{date.today().year}, {author}"
version = release = pointset.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]

nb_execution_mode = "off"  # the notebooks are committed with their output
myst_heading_anchors = 4  # anchors of headings are those of GitHub's pages

autodoc_typehints = "none"  # short_signature writes the annotations of the source
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Source"]
python_maximum_signature_line_length = 88
add_module_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"pointset {release}"
html_static_path = ["_static"]
html_extra_path = ["extra"]  # finished HTML pages
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page that is opened from the disk may not fetch the summary
html_theme_options = {"navigation_with_keys": True}


def setup(app: Sphinx) -> None:
    """Convert docstrings before napoleon, whose priority is 500, and take signatures from the source."""
    app.connect("autodoc-process-docstring", to_restructured_text, priority=400)
    app.connect("autodoc-skip-member", is_not_for_users)
    app.connect("autodoc-process-signature", short_signature)
