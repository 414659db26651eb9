"""The operator's pages in a real browser, against the real server, fed by real requests."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser

from tests.admin import browser as browsing
from tests.servers.bridge import Bridge

TOOLS = [{"name": name, "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
         for name in ("read_file", "run_shell")]  # fmt: skip
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'><svg onload='window.pwned = 1'>",
    "</pre></details></div></article></body><style>* { display: none !important }</style>",
    "\u202eright to left\u202c \x1b[2J\x1b[31mred \x00 nul",
    "javascript:window.pwned=1 {{ constructor }} x-data='window.pwned=1' <a href='javascript:window.pwned=1'>x</a>",
    "A" * 3_000_000,
)
WRAPPINGS = (
    "{}",
    "'>{}",
    '">{}',
    "</pre>{}",
    "</summary></details>{}",
    "<!--{}-->",
    "]]>{}",
    "\x00{}",
    "<svg>{}</svg>",
    "{}{}",
)
PAYLOADS = tuple(
    wrapping.replace("{}", payload)
    for wrapping in WRAPPINGS
    for payload in (
        "<script>window.pwned=1</script>",
        "<script src=data:text/javascript,window.pwned=1></script>",
        "<img src=x onerror=window.pwned=1>",
        "<img/src=x/onerror=window.pwned=1//",
        "<svg/onload=window.pwned=1>",
        "<body onload=window.pwned=1>",
        "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
        "<iframe src='javascript:parent.pwned=1'></iframe>",
        "<details open ontoggle=window.pwned=1>",
        "<input autofocus onfocus=window.pwned=1>",
        "<video><source onerror=window.pwned=1></video>",
        "<math><mtext><style><img src=x onerror=window.pwned=1>",
        "<div x-data='{}' x-init='window.pwned=1'></div>",
        "<div x-html=\"'<img src=x onerror=window.pwned=1>'\"></div>",
        "<div hx-get='/admin/' hx-trigger='load' hx-on::load='window.pwned=1'></div>",
        "<form action='javascript:window.pwned=1'><button autofocus>x</button></form>",
        "<meta http-equiv=refresh content='0;url=javascript:window.pwned=1'>",
        "<base href='//evil.example/'>",
        "<link rel=stylesheet href='data:text/css,*{display:none}'>",
        "{{constructor.constructor('window.pwned=1')()}}",
    )
)
LONG = "a_tool_whose_name_takes_all_that_the_api_allows_" * 3
LISTS = ("conversation", "turn", "toolmapping", "replay", "usageentry", "apikey", "process")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    made = Bridge(tmp_path_factory.mktemp("browser") / "home", {})
    made.start()
    made.manage("createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME=browsing.USER,
                DJANGO_SUPERUSER_PASSWORD=browsing.PASSWORD, DJANGO_SUPERUSER_EMAIL="o@example.org")  # fmt: skip
    converse(made, "healthy", ("a file", "a listing"), rounds=3)
    converse(made, "hostile", HOSTILE, rounds=4)
    blocks = [[{"type": "text", "text": text} for text in PAYLOADS[start : start + 50]] for start in range(0, 200, 50)]
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Look"}]}
    tools = [{"name": LONG[:128], "input_schema": {"type": "object"}}]
    assert made.post("/v1/messages", body | {"tools": tools}, {"x-conversation-id": "long" + "A" * 251})[0] == 200
    converse(made, "payloads", tuple(blocks), rounds=4)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing.chromium() as started:
        yield started


def converse(bridge: Bridge, name: str, results: tuple[Any, ...], rounds: int) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Look at the project, {results[0]!s:.40}"}]
    number = 0
    for _ in range(rounds):
        body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": messages, "tools": TOOLS}
        status, answer = bridge.post("/v1/messages", body, {"x-conversation-id": name})
        assert status == 200, answer
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        said: list[dict[str, Any]] = [{"type": "text", "text": "Go on."}]
        for call in calls:
            said.insert(
                0, {"type": "tool_result", "tool_use_id": call["id"], "content": results[number % len(results)]}
            )
            number += 1
        messages.append({"role": "user", "content": said})


def paths(came: browsing.Visitor, name: str) -> list[str]:
    """The pages of a conversation, as an operator gets to them."""
    came.go(f"/admin/conversations/conversation/?q={name}")
    came.page.click("#result_list tbody th a")
    chain = came.page.url
    hops = came.page.get_attribute(".tb-turn-head .tb-end", "href") or ""
    return [
        chain.removeprefix(came.url),
        hops,
        f"{hops}?diff=received-sent",
        chain.removeprefix(came.url) + "?q=project",
    ]


def test_an_operator_follows_a_tool_chain(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        chain, *_ = paths(came, "healthy")
        assert page.locator(".tb-call").count() >= 2
        assert page.locator(".tb-graph rect").count() >= 3
        page.click(".tb-turn-head .tb-end")
        assert page.locator(".tb-hop").count() == 4
        page.click("text=received with sent")
        assert page.locator(".tb-diff-added").count() > 0
        with page.expect_download() as download:
            page.click("text=Bug bundle")
        assert download.value.suggested_filename.endswith(".zip")
        came.go(chain)
        assert came.complaints == []


def test_a_turn_is_replayed_against_the_demo_upstream(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        paths(came, "healthy")
        page.click(".tb-turn-head .tb-end")
        for target in ("", "demo/another"):
            page.click(".tb-tools a:has-text('Replay')")
            page.fill("input[name=target]", target)
            page.click("text=Show what it costs")
            assert "at most" in (page.text_content(".tb-facts") or "")
            page.click("button:has-text('Replay through')")
            page.wait_for_selector(".tb-badge:text-is('complete')")
            assert "The texts are the same." in page.content()
            assert page.locator(".tb-pair .tb-badge:text-is('same')").count() == 2
            assert came.overflow <= 0
            page.click(".tb-tools a:text-is('Turn')")
        assert came.complaints == []


def test_an_operator_follows_a_running_tool_chain(chromium: Browser, bridge: Bridge) -> None:
    asked: dict[str, Any] = {"role": "user", "content": "Look at the project"}
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [asked], "tools": TOOLS}
    converse(bridge, "running", ("x",), rounds=1)
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        paths(came, "running")
        page.wait_for_selector(".tb-live-waiting li:has-text('read_file') .tb-meta")
        before = page.text_content(".tb-live-waiting .tb-meta")
        page.wait_for_function("before => document.querySelector('.tb-live-waiting .tb-meta').textContent !== before",
                               arg=before)  # fmt: skip
        status, first = bridge.post("/v1/messages", body, {"x-conversation-id": "running"})
        assert status == 200
        calls = [block for block in first["content"] if block["type"] == "tool_use"]
        page.wait_for_selector(".tb-live-turn .tb-call:has-text('run_shell')")
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": HOSTILE[1]} for call in calls]
        body["messages"] = [
            asked,
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": results},
        ]
        assert bridge.post("/v1/messages", body, {"x-conversation-id": "running"})[0] == 200
        page.wait_for_selector(".tb-live-turn:has(.tb-badge:text-is('complete')) pre:has-text('demo model')")
        assert page.evaluate("window.pwned") is None
        assert came.overflow <= 0
        assert came.complaints == []


def test_a_key_is_issued_and_shown_once(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        came.go("/admin/conversations/apikey/add/")
        page.fill("input[name=name]", "laptop")
        page.click("button:has-text('Issue')")
        secret = page.text_content("#secret") or ""
        assert secret.startswith("sk-tb-")
        page.reload()
        assert page.url.endswith("/admin/conversations/apikey/")
        assert secret not in page.content()
        assert page.locator("text=laptop").count() == 1
        status, _ = bridge.post("/v1/messages", {}, {"x-api-key": secret})
        assert status == 400
        assert came.complaints == []


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("desktop", "dark"), ("phone", "light")])
def test_no_page_runs_breaks_or_overflows(
    chromium: Browser, bridge: Bridge, size: str, scheme: Literal["light", "dark"]
) -> None:
    with browsing.visitor(chromium, bridge, size, scheme) as came:
        pages = paths(came, "hostile") + [f"/admin/conversations/{name}/" for name in LISTS] + ["/admin/connect/"]
        for path in pages:
            came.go(path)
            assert came.overflow <= 0, path
            assert came.page.locator("#content").is_visible(), path
            for fold in came.page.locator("details").all()[:20]:
                fold.evaluate("fold => fold.open = true")
            assert came.page.evaluate("window.pwned") is None, path
        assert came.complaints == []


def test_two_hundred_payloads_do_nothing(chromium: Browser, bridge: Bridge) -> None:
    assert len(set(PAYLOADS)) == 200
    with browsing.visitor(chromium, bridge) as came:
        for path in paths(came, "payloads"):
            came.go(path)
            came.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
            came.page.wait_for_timeout(300)
            assert came.page.evaluate("window.pwned") is None, path
            assert came.page.url.startswith(f"{bridge.url}/admin/")
        came.go(paths(came, "payloads")[0])
        assert came.page.locator(".tb-call .tb-part").count() >= 200
        assert came.complaints == []


def test_a_script_that_got_into_a_page_would_not_run(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        came.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned = 1\">');"
            "const script = document.createElement('script'); script.textContent = 'window.pwned = 1';"
            "document.body.append(script);"
        )
        came.page.wait_for_timeout(200)
        assert came.page.evaluate("window.pwned") is None


def test_a_conversation_is_terminated_after_a_question(chromium: Browser, bridge: Bridge) -> None:
    converse(bridge, "doomed", ("x",), rounds=1)
    with browsing.visitor(chromium, bridge) as came:
        paths(came, "doomed")
        came.page.click("a:has-text('Terminate')")
        came.page.click("button:has-text('Terminate')")
        came.page.get_by_text("was terminated").first.wait_for()
        came.go("/admin/conversations/conversation/?q=doomed")
        assert "Nothing matches" in came.page.content()
        assert came.complaints == []


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_no_long_name_widens_a_page(chromium: Browser, bridge: Bridge, size: str) -> None:
    with browsing.visitor(chromium, bridge, size) as came:
        page = came.page
        chain, hops, *_ = paths(came, "longAAA")
        came.go("/admin/conversations/toolmapping/?q=longAAA")
        name = page.locator("#result_list th .tb-short").bounding_box()
        assert name is not None
        assert name["width"] < 260
        page.click("#result_list tbody th a")
        call = page.url.removeprefix(came.url)
        for path in (chain, hops, call, chain.replace("toolchain", "change"), hops.replace("hops", "change")):
            came.go(path)
            assert came.overflow <= 0, path
        assert came.complaints == []


def test_nothing_lies_over_the_words_of_an_empty_list(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        for path in ("conversation/?q=nothing+of+the+kind", "route/"):
            came.go(f"/admin/conversations/{path}")
            words = came.page.locator(".tb-empty strong").bounding_box()
            button = came.page.locator(".tb-empty .tb-button").bounding_box()
            frame = came.page.locator(".tb-empty").bounding_box()
            assert words is not None
            assert button is not None
            assert frame is not None
            assert words["y"] + words["height"] <= button["y"], path
            at = (frame["x"] + 20, frame["y"] + 10)
            over = "([x, y]) => document.elementFromPoint(x, y).closest('.tb-empty') !== null"
            assert came.page.evaluate(over, list(at)), path


def test_filters_and_menus_are_opened_with_the_keyboard(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        came.go("/admin/conversations/turn/")
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(
                str(page.evaluate("(e => e.getAttribute('aria-label') || e.innerText)(document.activeElement)"))
            )
            if page.evaluate("document.activeElement.innerText.startsWith('Filters')"):
                break
        assert "Sidebar" in reached
        assert any(browsing.USER in words for words in reached)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Apply Filters").wait_for()
        assert came.complaints == []


def test_paper_is_light_and_shows_the_whole(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge, scheme="dark") as came:
        _, hops, *_ = paths(came, "healthy")
        came.go(hops)
        came.page.emulate_media(media="print")
        card = came.page.locator(".tb-card").first
        assert card.evaluate("card => getComputedStyle(card).backgroundColor") == "rgb(255, 255, 255)"
        hidden = came.page.locator(".tb-hop .tb-value").evaluate_all(
            "values => values.filter(value => value.scrollHeight > value.clientHeight + 1).length"
        )
        assert hidden == 0
        assert not came.page.locator("text=Bug bundle").is_visible()


def test_a_form_that_was_refused_leads_to_what_is_wrong(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        came.go("/admin/conversations/apikey/1/change/")
        came.page.fill("[name=ledger_days]", "1")
        came.page.click("[name=_save]")
        came.page.wait_for_selector("text=Please correct the error")
        assert came.page.evaluate("document.activeElement.name") == "ledger_days"
        assert came.page.locator("[name=ledger_days]").evaluate(
            "field => field.getBoundingClientRect().top < innerHeight"
        )


def test_letters_run_the_way_they_are_read(chromium: Browser, bridge: Bridge) -> None:
    places = """word => [...document.querySelectorAll('.tb-value')].flatMap(value => {
        const text = value.firstChild, start = value.textContent.indexOf(word), range = document.createRange();
        if (start < 0) return [];
        return [[0, 1].map(at => {
            range.setStart(text, start + at); range.setEnd(text, start + at + 1);
            return range.getBoundingClientRect().left;
        })];
    })"""
    converse(bridge, "arabic", ("مرحبا بالعالم",), rounds=2)
    with browsing.visitor(chromium, bridge) as came:
        chain, hops, *_ = paths(came, "arabic")
        for path, word, backwards in ((chain, "مرحبا", True), (hops, "مرحبا", True), (chain, "Look", False)):
            came.go(path)
            found = came.page.evaluate(places, word)
            assert found
            assert all((second < first) is backwards for first, second in found)


def test_the_buttons_of_a_page_leave_the_menu_its_place_on_a_phone(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge, "phone") as came:
        _, hops, *_ = paths(came, "healthy")
        came.go(hops)
        came.page.click(".tb-tools a[rel=next]")
        assert came.page.locator(".tb-tools a").count() == 5
        came.page.click(".material-symbols-outlined:text-is('dock_to_right') >> visible=true")
        assert came.complaints == []


def test_a_long_name_stays_where_it_stands(chromium: Browser, bridge: Bridge) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        came.go("/admin/conversations/apikey/add/")
        page.fill("input[name=name]", "K" * 100)
        page.click("button:has-text('Issue')")
        wide = "element => element.scrollWidth - element.clientWidth"
        assert page.locator(".tb-card").evaluate(wide) <= 0
        came.go("/admin/conversations/apikey/")
        assert page.locator("#result_list").evaluate(f"list => ({wide})(list.parentElement)") <= 0
        help_text = page.locator("#searchbar").evaluate(wide)
        assert help_text <= 0
