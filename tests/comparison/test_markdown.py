"""Names that look like markup are shown as they are."""

import pytest

from pointset.comparison.tables import in_markdown, in_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("isab16-pma seeds=pooled", "isab16-pma seeds=pooled"),
        ("night_stand", "night_stand"),
        ("a|b", r"a\|b"),
        ("<b>`x`</b>", r"\<b\>\`x\`\</b\>"),
        ("_x_ *y* [z](u)", r"\_x\_ \*y\* \[z\](u)"),
        ("two\nlines\x1b", r"two\\nlines\\x1b"),
    ],
)
def test_markup_is_escaped(text: str, shown: str) -> None:
    found = in_markdown(text)
    assert "\n" not in found
    assert found.replace("\\\\", "\\") == shown.replace("\\\\", "\\")
    assert in_table(text, "github") == found
    assert "\\|" not in in_table(text, "simple")
