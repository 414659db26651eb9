"""How pages look: no form is wider than its window, and every word can be read (AA of WCAG: 4.5 to 1, large ones 3)."""

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.admin import browser as browsing
from tests.admin.test_browser import converse
from tests.servers.bridge import Bridge

# What is drawn over what, from the page itself: a canvas turns any colour into red, green, blue and alpha.
FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parts = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(at => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const light = ([...colour]) => {
    const [r, g, b] = colour.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = new Set(), words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const text = words.currentNode.textContent.trim(), place = words.currentNode.parentElement;
    const seen = place.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
    if (!text || !seen || !place.getClientRects().length || place.closest('.material-symbols-outlined, svg')) continue;
    const grounds = [];
    for (let at = place; at; at = at.parentElement) grounds.push(parts(getComputedStyle(at).backgroundColor));
    const ground = grounds.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    const style = getComputedStyle(place), own = light(over(parts(style.color), ground)), behind = light(ground);
    const ratio = (Math.max(own, behind) + .05) / (Math.min(own, behind) + .05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5) - .01) found.add(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return [...found];
}"""
# What is pressed or filled in, and would be read out as nothing or as the word that draws an icon.
NAMELESS = """() => [...document.querySelectorAll('a, button, [role=button], input, select')].filter(place => {
  const theirs = place.closest('svg, .select2, .datetimeshortcuts');  // Django's own widgets, named inside
  if (theirs || !place.checkVisibility() || place.type === 'hidden') return false;
  if (place.getAttribute('aria-label') || place.title || place.labels?.length) return false;
  const icons = [...place.querySelectorAll('.material-symbols-outlined')].map(icon => icon.textContent).join('');
  return place.textContent.trim() === icons.trim();
}).map(place => place.outerHTML.slice(0, 200))"""
# Cells of a list whose text begins above them, or ends below.
SPILLED = """() => [...document.querySelectorAll('#result_list :is(td, th)')].filter(cell => {
  const words = document.createRange(), frame = cell.getBoundingClientRect();
  words.selectNodeContents(cell);
  return [...words.getClientRects()].some(line => line.height && (line.top < frame.top || line.bottom > frame.bottom));
}).map(cell => cell.textContent.trim())"""
LISTS = ("conversation", "turn", "toolmapping", "usageentry", "apikey", "upstream", "route", "price", "process")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    made = Bridge(tmp_path_factory.mktemp("contrast") / "home", {})
    made.start()
    made.manage("createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME=browsing.USER,
                DJANGO_SUPERUSER_PASSWORD=browsing.PASSWORD, DJANGO_SUPERUSER_EMAIL="o@example.org")  # fmt: skip
    for number in range(26):  # two pages of turns
        converse(made, f"session {number}", ("a file", "a listing"), rounds=2)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing.chromium() as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_word_is_too_faint_to_be_read(chromium: Browser, bridge: Bridge, scheme: Literal["light", "dark"]) -> None:
    with browsing.visitor(chromium, bridge, scheme=scheme) as came:
        page = came.page
        came.go("/admin/conversations/conversation/")
        page.click("#result_list tbody th a")
        chain = page.url.removeprefix(came.url)
        hops = page.get_attribute(".tb-turn-head .tb-end", "href") or ""
        own = [chain, hops, f"{hops}?diff=received-sent", chain.replace("toolchain", "terminate")]
        forms = [
            "/admin/conversations/apikey/add/",
            "/admin/conversations/apikey/1/change/",
            "/admin/auth/user/2/change/",
        ]
        lists = [f"/admin/conversations/{name}/" for name in LISTS]
        for path in ("/admin/", "/admin/connect/", "/admin/nowhere/", *own, *forms, *lists):
            came.go(path)
            assert came.page.evaluate(FAINT) == [], path


def test_the_login_can_be_read_in_the_dark(chromium: Browser, bridge: Bridge) -> None:
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(f"{bridge.url}/admin/login/")
    assert page.evaluate(FAINT) == []
    context.close()


@pytest.mark.parametrize("width", [390, 768, 1024, 1280, 1440])
def test_no_form_is_wider_than_its_window(chromium: Browser, bridge: Bridge, width: int) -> None:
    tables = ("auth/user", "auth/group", "conversations/hostedtool", "conversations/route", "conversations/apikey",
              "conversations/upstream", "conversations/price", "conversations/toolsecret")  # fmt: skip
    with browsing.visitor(chromium, bridge) as came:
        came.page.set_viewport_size({"width": width, "height": 800})
        for path in ("auth/user/2/change/", *(f"{table}/add/" for table in tables)):
            came.go(f"/admin/{path}")
            assert came.overflow <= 0, path


@pytest.mark.parametrize("width", [390, 1440])
def test_everything_that_is_pressed_or_filled_in_has_a_name(chromium: Browser, bridge: Bridge, width: int) -> None:
    tables = ("conversations/conversation", "conversations/turn", "conversations/apikey", "conversations/route")
    forms = ("conversations/apikey/1/change", "conversations/hostedtool/add", "auth/user/2/change", "auth/group/add")
    with browsing.visitor(chromium, bridge) as came:
        came.page.set_viewport_size({"width": width, "height": 800})
        for path in ("/admin/", "/admin/connect/", *(f"/admin/{place}/" for place in (*tables, *forms))):
            came.go(path)
            assert came.page.evaluate(NAMELESS) == [], path


@pytest.mark.parametrize("width", [390, 768])
def test_a_long_name_in_a_list_is_read_from_its_beginning_to_its_end(
    chromium: Browser, bridge: Bridge, width: int
) -> None:
    bridge.manage("issue_key", ("a nightly agent of the department " * 3)[:100])
    with browsing.visitor(chromium, bridge) as came:
        came.page.set_viewport_size({"width": width, "height": 800})
        came.go("/admin/conversations/apikey/")
        assert came.page.evaluate(SPILLED) == []
