"""Every page in light, in dark and on a phone: a screenshot is taken, nothing is too wide, axe finds nothing.

With WAKEFUL_TEST_SHOTS set to a folder, screenshots go there, for people to look at.
"""

import os
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.places import make_places
from browser.visits import check_with_axe, go, load_axe, watch
from live_server import Patient, running_server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(own_files):
    async with running_server(own_files, patient=Patient(retries=0)) as server:
        yield server


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


async def test_axe_finds_nothing_in_dialogs_and_menus(places, come):
    async with come(places["chat"]) as page:
        await load_axe(page)
        await page.get_by_role("button", name="Edit", exact=True).click()
        await expect(page.locator(".next-times li")).to_have_count(5)
        assert await check_with_axe(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_label("Scheduled run", exact=True).get_by_role("button", name="Pause").click()
        await expect(page.get_by_role("menu")).to_be_visible()
        assert await check_with_axe(page) == []
        await go(page, places["data"])
        await page.get_by_role("button", name="Open row 1").click()
        await page.get_by_text("History").click()
        assert await check_with_axe(page) == []
        await page.get_by_role("dialog").get_by_role("button", name="Edit").click()
        assert await check_with_axe(page) == []
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Filter").click()
        await page.get_by_role("button", name="Add condition").click()
        assert await check_with_axe(page) == []
        await page.get_by_role("group", name="Condition 2").get_by_label("Comparison").select_option("is null")
        await page.get_by_role("button", name="Apply").click()
        await expect(page.get_by_role("list", name="Conditions").get_by_role("listitem")).to_have_count(2)
        assert await check_with_axe(page) == []


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
