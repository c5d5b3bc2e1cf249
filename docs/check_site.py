"""Check the site that Sphinx made: links lead somewhere, it works offline, markup is whole.

python docs/check_site.py build/docs
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
CODE = ("pre", "code", "script", "style")
OUTSIDE = ("http", "https", "mailto", "data")


class Page(HTMLParser):
    """What one page loads, links to, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.torn: list[str] = []
        self._code = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort out a tag's addresses."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in LOADS and LOADS[tag] in given:
            self.loads.append(given[LOADS[tag]])
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        self._code += tag in CODE

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        self._code -= tag in CODE

    def handle_data(self, data: str) -> None:
        """Find backticks among words: the marks of code that a line break has torn apart."""
        if "`" in data and not self._code:
            self.torn.append(" ".join(data.split()))


def problems(site: Path) -> list[str]:
    """Return what is wrong with a site."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"no pages in {site}"]
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {url}" for url in page.loads if urlsplit(url).netloc]
        found += [f"{name} has torn markup: {text}" for text in page.torn]
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme in OUTSIDE or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} links to {url}, which does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {url}, which has no such place")
    for path in sorted(site.rglob("*.css")):
        loads = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]+)", path.read_text())
        found += [f"{path.relative_to(site)} loads {url}" for url in loads]
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print(
        "\n".join(wrong)
        or f"{sys.argv[1]}: all links lead somewhere, nothing is loaded, markup is whole"
    )
    sys.exit(bool(wrong))
