"""Sphinx's settings for the site; scripts/docs/build.py puts the pages together and runs it."""

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

nb_execution_mode = "off"  # the notebooks were committed with what they show
myst_heading_anchors = 4  # links to a heading, as the web pages of a repository have them

autodoc_typehints = "none"  # signatures are written as the source has them
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Source"]
python_maximum_signature_line_length = 88
add_module_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"pointset {release}"
html_static_path = ["_static"]
html_extra_path = ["extra"]  # pages that are whole already
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would be fetched, which a page from the disk may not
html_theme_options = {"navigation_with_keys": True}


def setup(app: Sphinx) -> None:
    """Let docstrings and signatures be read as the source has them; before napoleon, which comes at 500."""
    app.connect("autodoc-process-docstring", to_restructured_text, priority=400)
    app.connect("autodoc-skip-member", is_not_for_users)
    app.connect("autodoc-process-signature", short_signature)
