"""Every page in light, in dark and on a phone: a screenshot is taken, nothing is too wide, axe finds nothing.

With WAKEFUL_TEST_SHOTS set to a folder, screenshots go there, for people to look at.
"""

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.dialogs import DIALOGS
from browser.places import make_places
from browser.visits import check_with_axe, go, load_axe, watch
from fixtures.stores import IS_LONG

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(server):
    return await make_places(server)


# Elements that look clickable, and that the keyboard reaches neither by themselves nor by something in or around them.
MOUSE_ONLY = """() => {
  const fields = 'a[href], button, input, select, textarea, summary, label';
  const reached = `${fields}, [role=option], [tabindex]:not(main, [role=log])`;
  return [...document.querySelectorAll('body *')]
    .filter(each => getComputedStyle(each).cursor === 'pointer')
    .filter(each => !each.closest(reached) && !each.querySelector(reached))
    .map(each => each.outerHTML.slice(0, 160));
}"""

# In the dark only the colours differ, on a phone only the layout, so axe looks for no more there.
LOOKS = [
    pytest.param({"color_scheme": "light", "viewport": {"width": 1280, "height": 820}}, {}, id="light"),
    pytest.param(
        {"color_scheme": "dark", "viewport": {"width": 1280, "height": 820}}, {"runOnly": ["color-contrast"]}, id="dark"
    ),
    pytest.param(
        {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
        {"rules": {"color-contrast": {"enabled": False}}},
        id="phone",
    ),
]


async def height_of(page):
    return await page.evaluate("document.documentElement.scrollHeight")


@pytest.mark.parametrize(("how", "rules"), LOOKS)
async def test_every_page_fits_and_axe_finds_nothing(places, come, how, rules, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    look, found, refused = request.node.callspec.id, {}, []
    async with come(**how) as page:
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        await load_axe(page)
        for name, path in places.items():
            await go(page, path)
            if folder is not None:
                await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (name, wide) == (name, how["viewport"]["width"])
            await page.evaluate("document.querySelectorAll('.fold[aria-expanded=false]').forEach(fold => fold.click())")
            assert (name, await height_of(page)) == (name, how["viewport"]["height"])  # only its parts scroll
            found[name] = await check_with_axe(page, rules) + await page.evaluate(MOUSE_ONLY)
        assert {name: problems for name, problems in found.items() if problems} == {}
    assert refused == []  # which the browser logs as errors


@pytest.mark.parametrize(("how", "rules"), LOOKS)
async def test_axe_finds_nothing_on_the_login_pages(server, browser, how, rules, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    look, found = request.node.callspec.id, {}
    context = await browser.new_context(**how)
    page = await context.new_page()
    complaints = watch(page)
    for name, path in {"login": "/login", "used-link": "/login?code=used", "signed-out": "/ui/agenda"}.items():
        await page.goto(server.address + path)
        await expect(page.get_by_role("main")).to_contain_text("wakeful login")
        if name == "used-link":
            await expect(page.get_by_role("alert")).to_contain_text("used before")
        if folder is not None:
            await page.screenshot(path=Path(folder, f"{name}-{look}.png"), animations="disabled")
        assert await page.evaluate("document.documentElement.scrollWidth") == how["viewport"]["width"]
        assert await height_of(page) == how["viewport"]["height"]
        await load_axe(page)
        found[name] = await check_with_axe(page, rules)
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert complaints == []
    await context.close()


async def test_a_model_without_a_known_price_does_not_cost_nothing(places, come):
    async with come(places["configure"]) as page:
        await expect(page.get_by_role("group", name="Used today")).to_contain_text("Cost unknown price")


async def test_on_a_phone_the_sidebar_opens_and_closes(come):
    async with come(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as page:
        await page.get_by_role("button", name="Open the sidebar").click()
        await page.get_by_role("link", name="Agenda").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agenda")
        await expect(page.get_by_role("link", name="Agenda")).to_be_hidden()


@pytest.mark.parametrize(("how", "rules"), LOOKS)
async def test_axe_finds_nothing_in_the_palette_and_the_list_of_shortcuts(places, come, how, rules, request):
    folder = os.environ.get("WAKEFUL_TEST_SHOTS")
    found = {}
    async with come(places["chat"], **how) as page:
        await load_axe(page)

        async def look(name):
            if folder is not None:
                path = Path(folder, f"{name}-{request.node.callspec.id}.png")
                await page.screenshot(path=path, animations="disabled")
            assert await page.evaluate("document.documentElement.scrollWidth") == how["viewport"]["width"]
            found[name] = await check_with_axe(page, rules)

        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        await page.keyboard.press("Control+k")
        palette = page.get_by_role("combobox", name="Search and commands")
        await expect(palette).to_be_focused()
        await look("palette")
        await palette.fill("all sorts")  # in a message
        await expect(page.get_by_role("group", name="Messages").get_by_role("option")).to_have_count(1)
        await look("palette-messages")
        await page.keyboard.press("Escape")
        await page.get_by_role("log").focus()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("New session")
        await look("shortcuts")
        assert {name: problems for name, problems in found.items() if problems} == {}


# A form in a dialog can be left with a button: the cross in the corner is small, and Escape is not known to all.
NO_WAY_BACK = """() => [...document.querySelectorAll('dialog form button[type=submit]')]
  .map(each => each.closest('.row, form'))
  .filter(row => ![...row.querySelectorAll('button')].some(each => /^(Cancel|Back)$/.test(each.textContent)))
  .filter(row => !row.closest('.sheet'))
  .map(row => row.textContent)"""


@pytest.mark.parametrize(("how", "rules"), LOOKS if IS_LONG else LOOKS[:1])
async def test_axe_finds_nothing_in_dialogs_and_menus(places, come, how, rules):
    found = {}
    async with come(**how) as page:
        await load_axe(page)
        for name, open_dialog in DIALOGS.items():
            await open_dialog(page, places)
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (name, wide) == (name, how["viewport"]["width"])
            found[name] = await check_with_axe(page, rules) + await page.evaluate(NO_WAY_BACK)
            while await page.locator("dialog[open], [role=menu]").count():
                await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
    assert {name: problems for name, problems in found.items() if problems} == {}


async def test_conditions_of_a_filter_have_names(places, come):
    async with come(places["data"]) as page:
        await load_axe(page)
        await page.get_by_role("button", name="Filter").click()
        await page.get_by_role("button", name="Add condition").click()
        await page.get_by_role("group", name="Condition 2").get_by_label("Comparison").select_option("is null")
        await page.get_by_role("button", name="Apply").click()
        await expect(page.get_by_role("list", name="Conditions").get_by_role("listitem")).to_have_count(2)
        assert await check_with_axe(page) == []


# Lists the controls of the page, or of the dialog that is open, and notes which of them get a focus that is seen.
BEGIN_WALK = """() => {
  const within = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
  const controls = [...within.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter(each => each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true}));
  // The palette is a dialog with one field, whose border is coloured.
  const isSeen = each => each && (getComputedStyle(each).outlineStyle !== 'none' || each.role === 'combobox'
    || isSeen(each.parentElement));
  window.walk = {controls, reached: new Set(), unseen: new Set()};
  document.activeElement?.blur();
  document.addEventListener('focusin', ({target}) => {
    window.walk.reached.add(target);
    queueMicrotask(() => {  // a group of radio buttons passes the focus on
      if (target === document.activeElement && !isSeen(target)) window.walk.unseen.add(target);
    });
  });
  return controls.length;
}"""
END_WALK = """() => {
  const {controls, reached, unseen} = window.walk;
  const isReached = each => reached.has(each)
    || (each.type === 'radio' && [...reached].some(other => other.type === 'radio' && other.name === each.name));
  const say = (each, what) => `${what}: ${each.outerHTML.slice(0, 160)}`;
  return [...controls.filter(each => each.isConnected && !isReached(each)).map(each => say(each, 'not reached')),
          ...[...unseen].map(each => say(each, 'focus not seen'))];
}"""


async def walk(page):
    """Press Tab as often as there are controls, and return those that it does not reach or whose focus is not seen."""
    count = await page.evaluate(BEGIN_WALK)
    for _ in range(2):  # a message box that takes the focus when it is loaded makes a second round necessary
        for _ in range(count + 4):
            await page.keyboard.press("Tab")
        if not (found := await page.evaluate(END_WALK)):
            break
    return found


async def test_tab_reaches_every_control_of_every_page_and_shows_where_it_is(places, come):
    found = {}
    async with come() as page:
        for name, path in places.items():
            await go(page, path)
            found[name] = await walk(page)
    assert {name: problems for name, problems in found.items() if problems} == {}


async def test_tab_reaches_every_control_of_a_dialog_and_escape_leads_back(places, come):
    found = {}
    async with come() as page:
        for name in DIALOGS if IS_LONG else ("edit", "connect-form", "edit-row", "filter", "rename-session"):
            await DIALOGS[name](page, places)
            found[name] = [] if await page.get_by_role("menu").count() else await walk(page)
            while await page.locator("dialog[open], [role=menu]").count():
                await page.keyboard.press("Escape")
            if name not in ("palette", "shortcuts"):  # which a key opened
                await expect(page.locator(":focus"), f"{name} loses the focus").to_have_count(1)
    assert {name: problems for name, problems in found.items() if problems} == {}


PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
# Controls that are too small for a finger: under 40 pixels, with the label of a checkbox and the margin of a switch.
# Links in a text may be as small as the text.
SMALL = """() => [...document.querySelectorAll("button, a, select, input, summary")].flatMap((each) => {
  const place = each.matches("[type=checkbox]") ? (each.closest("label, td, th") ?? each) : each;
  const margin = getComputedStyle(each, "::after");
  const isSwitch = each.matches("[role=switch]");
  const { width, height } = isSwitch
    ? { width: parseFloat(margin.width), height: parseFloat(margin.height) }
    : place.getBoundingClientRect();
  const isShown = each.checkVisibility() && width > 1 && !each.closest(".markdown, p, .footnote");
  return isShown && (height < 39.5 || width < 39.5) ? [`${each.outerHTML.slice(0, 120)} ${width}x${height}`] : [];
})"""


async def test_on_a_phone_the_banner_is_one_line_that_opens_a_sheet(places, come):
    async with come(places["chat"], **PHONE) as page:
        line = page.get_by_role("button", name="Look at the garden")
        assert (await line.bounding_box())["height"] <= 44
        await line.tap()
        sheet = page.get_by_role("dialog", name="Scheduled runs")
        await expect(sheet).to_contain_text("recurring")
        await load_axe(page)
        assert await check_with_axe(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") == 320
        await sheet.get_by_role("button", name="Pause").tap()
        await expect(page.get_by_role("menuitem", name="4 hours")).to_be_visible()
        await page.get_by_role("menuitem", name="Custom").tap()
        await expect(page.get_by_role("dialog", name="Pause this agent")).to_be_visible()
        await page.keyboard.press("Escape")
        await sheet.get_by_role("button", name="Edit", exact=True).tap()
        await expect(sheet).to_have_count(0)
        await expect(page.locator(".next-times li")).to_have_count(5)
        await page.keyboard.press("Escape")
        await go(page, places["scheduled-session"])  # nothing is scheduled here, but its agent has a next run
        await expect(page.locator(".banner-line")).to_contain_text("Wakeful's next run in 2 h")


# Parts of the line whose text is cut or hidden.
CUT = """() => [...document.querySelectorAll('.banner-line, .banner-line *')]
  .filter(each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
  .map(each => each.outerHTML)"""


async def test_on_a_phone_the_line_of_a_pause_is_never_cut(server, places, come):
    soon, late = ((server.node.clock.now() + timedelta(hours=each)).isoformat() for each in (30, 960))
    async with come(places["chat"], **PHONE) as page:
        for pause, said in (
            ({"preset": "indefinitely"}, re.compile("^Paused 2 runs on hold$")),
            ({"until": soon}, re.compile("^Paused until .*2 runs on hold$")),
            ({"until": late}, re.compile("^Paused until .*2 runs on hold$")),
        ):
            await server.call("PUT", "/pause", json=pause)
            line = page.get_by_role("button", name="Paused")
            await expect(line).to_have_text(said)
            assert await page.evaluate(CUT) == []
            assert (await line.bounding_box())["height"] <= (44 if "until" not in said.pattern else 64)
    await server.call("DELETE", "/pause")


# Words in the cells of tables that are broken into two lines.
BROKEN = """() => [...document.querySelectorAll(".markdown :is(th, td)")].flatMap((cell) => {
  const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
  const words = [...(text?.data ?? "").matchAll(/[\\w.]+/g)];
  return words.filter(({ 0: word, index }) => {
    const range = document.createRange();
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    return range.getClientRects().length > 1;
  }).map(([word]) => word);
})"""


async def test_on_a_phone_a_table_scrolls_and_breaks_no_word(places, come):
    async with come(places["chat"], **PHONE) as page:
        table = page.locator(".markdown .table-scroll")
        await expect(table).to_contain_text("pumpkins")
        assert await page.evaluate(BROKEN) == []
        assert await table.evaluate("box => box.scrollWidth > box.clientWidth")


async def test_on_a_phone_everything_fits_and_is_large_enough_for_a_finger(places, come):
    found = {}
    async with come(**PHONE) as page:
        for name, path in places.items():
            await go(page, path)
            wide = await page.evaluate("document.documentElement.scrollWidth")
            found[name] = [*([] if wide == 320 else [f"{wide} pixels wide"]), *await page.evaluate(SMALL)]
        await go(page, places["data"])
        await page.get_by_role("button", name="Options").tap()
        await load_axe(page)
        found["options"] = [*await check_with_axe(page), *await page.evaluate(SMALL)]
    assert {name: problems for name, problems in found.items() if problems} == {}
