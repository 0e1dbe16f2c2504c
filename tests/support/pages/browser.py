"""A page as people see it: opened in a real Chromium, narrow and wide, light and dark.

The browser is the machine's: Debian's package `chromium`.
"""

import shutil
from contextlib import contextmanager

from tests.support.cluster.harness import missing

PHONE = 320
"""The narrowest page that needs no sideways scrolling: WCAG 2.2, 1.4.10 (Reflow)."""
DESK = 1280
GRAVE = {"serious", "critical"}
VIEWS = [(PHONE, "light"), (DESK, "dark")]
"""Each width and each scheme once: only colours depend on the scheme, and they on nothing else."""
NO_GRAPHICS = ["--disable-gpu", "--disable-software-rasterizer"]
"""To simulate a graphics card takes a fifth of the time."""
ALL: dict = {"resultTypes": ["violations"]}
COLOURS = {**ALL, "runOnly": ["color-contrast"]}


@contextmanager
def chromium():
    """A running browser; without one the test ends here."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or missing("no Chromium on PATH: install the package chromium")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=NO_GRAPHICS) as running,
    ):
        yield running


@contextmanager
def view(browser, path, width, scheme):
    """The page in a tab, all its details open, and a list of its errors meanwhile."""
    shape = {"width": width, "height": 800}
    with browser.new_page(viewport=shape, color_scheme=scheme) as tab:
        wrong = []
        tab.on("pageerror", lambda error: wrong.append(f"a script failed: {error}"))
        tab.on("console", lambda line: wrong.append(f"the console says: {line.text}"))
        tab.on("request", lambda asked: wrong.append(f"it loads {asked.url}"))
        tab.goto(path.as_uri())
        wrong.remove(f"it loads {path.as_uri()}")
        tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        yield tab, wrong


def faults(browser, path, views=VIEWS):
    """The faults of a page, a line each: its colours in all views, the rest in the first."""
    from axe_playwright_python.sync_playwright import Axe

    found = []
    with view(browser, path, *views[0]) as (tab, wrong):
        for number, (width, scheme) in enumerate(views):
            tab.set_viewport_size({"width": width, "height": 800})
            tab.emulate_media(color_scheme=scheme)
            needs = tab.evaluate("document.documentElement.scrollWidth")
            if needs > width:
                wrong.append(f"it is {needs} pixels wide")
            looked = Axe().run(tab, options=COLOURS if number else ALL)
            for finding in looked.response["violations"]:
                if finding["impact"] in GRAVE:
                    where = ", ".join(str(node["target"]) for node in finding["nodes"][:3])
                    wrong.append(f"{finding['id']} ({finding['impact']}): {where}")
            found += [f"{width} px, {scheme}: {problem}" for problem in wrong]
            wrong.clear()
    return found
