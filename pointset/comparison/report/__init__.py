"""A comparison as a page, a Markdown file and figures that a reviewer can check."""
