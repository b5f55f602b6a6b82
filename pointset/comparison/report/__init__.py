"""A comparison as a page, a Markdown file and figures that a reviewer can check."""

from pointset.comparison.report.pages import write_report

__all__ = ["write_report"]
