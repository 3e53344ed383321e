"""How the site is built (``make docs``): Sphinx reads the guides and the docstrings; its warnings are errors."""

from toolcrib import __version__

project = "Toolcrib"
release = __version__
copyright = "the Toolcrib authors"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"Toolcrib {__version__}"
html_copy_source = False
html_show_sourcelink = False

myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
