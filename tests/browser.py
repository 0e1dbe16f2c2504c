"""A page as people see it: opened in a real Chromium, narrow and wide, light and dark.

The browser is the machine's (Debian's package `chromium`). Where there is none, a test that needs
it fails in CI, and is skipped elsewhere with a word on what to install.
"""

import os
import shutil
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

PHONE, DESK = 390, 1280
GRAVE = {"serious", "critical"}
VIEWS = [(width, scheme) for width in (PHONE, DESK) for scheme in ("light", "dark")]


def find_chromium():
    """Its path."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("no Chromium on PATH: install the package `chromium`")
    return found


@contextmanager
def chromium():
    """A running browser."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_chromium())
        yield running
        running.close()


@contextmanager
def view(browser, path, width, scheme):
    """The page in a tab, and a list of what it did wrong meanwhile."""
    tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    wrong = []
    tab.on("pageerror", lambda error: wrong.append(f"a script failed: {error}"))
    tab.on("console", lambda line: wrong.append(f"the console says: {line.text}"))
    tab.on("request", lambda asked: wrong.append(f"it loads {asked.url}"))
    tab.goto(path.as_uri())
    wrong.remove(f"it loads {path.as_uri()}")
    yield tab, wrong
    tab.close()


def faults(browser, path):
    """What is wrong with a page, in all views: a line each."""
    found = []
    for width, scheme in VIEWS:
        with view(browser, path, width, scheme) as (tab, wrong):
            needs = tab.evaluate("document.documentElement.scrollWidth")
            if needs > width:
                wrong.append(f"it is {needs} pixels wide")
            for finding in Axe().run(tab).response["violations"]:
                if finding["impact"] in GRAVE:
                    where = ", ".join(str(node["target"]) for node in finding["nodes"][:3])
                    wrong.append(f"{finding['id']} ({finding['impact']}): {where}")
        found += [f"{width} px, {scheme}: {problem}" for problem in wrong]
    return found
