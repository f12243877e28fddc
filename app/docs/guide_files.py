"""The guide as HTML files, which any web server or browser shows: `python -m app.docs.guide_files FOLDER`."""

import re
import sys
from importlib import resources
from pathlib import Path

from app.docs.guide import ORDER, pages
from app.docs.guide_html import ROOT, guide_page

_SERVED = re.compile(rf'"{ROOT}(?:/([^"#]+))?(#[^"]*)?"')
_PICTURE = re.compile('"/docs/(pictures/[^"]+)"')


def write_pages(folder: Path) -> int:
    """Write every page with relative links, its pictures, and `index.html`, the first page; return their number."""
    for name, page in pages().items():
        file = folder / f"{name}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_relative(guide_page(page, searchable=False), "../" * name.count("/")), encoding="utf-8")
    (folder / "index.html").write_bytes((folder / f"{ORDER[0]}.html").read_bytes())
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    for picture in resources.files(__package__).joinpath("pictures").iterdir():
        (pictures / picture.name).write_bytes(picture.read_bytes())
    return len(pages())


def _relative(html: str, up: str) -> str:
    """The page with links to files beside it, `up` to the folder of all pages."""
    html = _SERVED.sub(lambda link: f'"{up}{link[1] or "index"}.html{link[2] or ""}"', html)
    return _PICTURE.sub(lambda picture: f'"{up}{picture[1]}"', html)


if __name__ == "__main__":
    count = write_pages(Path(sys.argv[1]))
    sys.stderr.write(f"{count} pages are in {sys.argv[1]}.\n")
