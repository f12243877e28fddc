"""Tables that a benchmark writes into the guide, between its marks."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "app" / "docs"


def write_table(page: str, name: str, text: str) -> None:
    """Put the text between the marks of this name on the page."""
    path = GUIDE / f"{page}.md"
    marks = rf"(<!-- measured {name} -->\n).*?(<!-- /measured {name} -->)"
    result, count = re.subn(marks, lambda found: f"{found[1]}{text}\n{found[2]}", path.read_text(), flags=re.DOTALL)
    assert count == 1, "the guide has lost its marks"
    path.write_text(result)
