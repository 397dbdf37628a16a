"""Every dialog and menu of the page and how a person opens it, for tests and for scripts/places.py."""

from collections.abc import Awaitable, Callable

from playwright.async_api import Locator, Page, expect

from browser.visits import go

Open = Callable[[Page, dict[str, str]], Awaitable[None]]


async def _open_banner(page: Page, places: dict[str, str]) -> Locator:
    """Return the banner of the chat; on a phone, the sheet that its line opens."""
    await go(page, places["chat"])
    banner = page.get_by_label("Scheduled run", exact=True)
    line, sheet = page.get_by_role("button", name="Look at the garden"), page.get_by_role("dialog")
    await expect(banner.or_(line).first).to_be_visible()
    if await line.count():
        await line.click()
        return sheet
    return banner


async def _edit(page: Page, places: dict[str, str]) -> None:
    banner = await _open_banner(page, places)
    await banner.get_by_role("button", name="Edit", exact=True).first.click()
    await page.get_by_text("How it came about").click()
    await expect(page.locator(".next-times li")).to_have_count(5)


async def _schedule(page: Page, places: dict[str, str]) -> None:
    await go(page, places["scheduled-session"])
    await page.get_by_role("button", name="Schedule", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("When").fill("tomorrow at 9")
    await dialog.get_by_label("Repeat").select_option("Every…")
    await expect(page.locator(".next-times li").first).to_be_visible()


async def _pause_menu(page: Page, places: dict[str, str]) -> None:
    banner = await _open_banner(page, places)
    await banner.get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("menu")).to_be_visible()


async def _pause_until(page: Page, places: dict[str, str]) -> None:
    await _pause_menu(page, places)
    await page.get_by_role("menuitem", name="Custom").click()


async def _session_menu(page: Page, places: dict[str, str]) -> None:
    await go(page, places["chat"])
    await page.get_by_role("button", name="Session", exact=True).click()
    await expect(page.get_by_role("menu")).to_be_visible()


async def _rename_session(page: Page, places: dict[str, str]) -> None:
    await _session_menu(page, places)
    await page.get_by_role("menuitem", name="Rename…").click()


async def _delete_session(page: Page, places: dict[str, str]) -> None:
    await _session_menu(page, places)
    await page.get_by_role("menuitem", name="Delete…").click()


async def _connect(page: Page, places: dict[str, str]) -> None:
    await go(page, places["settings"])
    await page.get_by_role("button", name="Connect a model").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Anthropic")


async def _connect_form(page: Page, places: dict[str, str]) -> None:
    await _connect(page, places)
    await page.get_by_role("dialog").get_by_role("button", name="OpenRouter").click()
    await page.get_by_text("More settings").click()


async def _new_agent(page: Page, places: dict[str, str]) -> None:
    await go(page, places["agents"])
    await page.get_by_role("button", name="New agent").click()


async def _delete_agent(page: Page, places: dict[str, str]) -> None:
    await go(page, places["configure"])
    await page.get_by_role("button", name="Delete Wakeful").click()


async def _erase(page: Page, places: dict[str, str]) -> None:
    await go(page, places["configure"])
    await page.get_by_role("button", name="Erase data").click()


async def _open_row(page: Page, places: dict[str, str]) -> None:
    await go(page, places["data"])
    await page.get_by_role("button", name="Open row 1").click()
    await page.get_by_text("History").click()


async def _edit_row(page: Page, places: dict[str, str]) -> None:
    await _open_row(page, places)
    await page.get_by_role("dialog").get_by_role("button", name="Edit").click()


async def _new_row(page: Page, places: dict[str, str]) -> None:
    await go(page, places["data"])
    await page.get_by_role("button", name="Add row").click()


async def _open_options(page: Page, places: dict[str, str]) -> bool:
    """Open the sheet with the controls of a table, which only a phone has."""
    await go(page, places["data"])
    options = page.get_by_role("button", name="Options", exact=True)
    await expect(page.get_by_role("button", name="Add row")).to_be_visible()
    if await options.count() == 0:
        return False
    await options.click()
    return True


async def _filter(page: Page, places: dict[str, str]) -> None:
    if not await _open_options(page, places):
        await page.get_by_role("button", name="Filter", exact=True).click()
    await page.get_by_role("button", name="Add condition").click()


async def _import(page: Page, places: dict[str, str]) -> None:
    await _open_options(page, places)
    await page.get_by_role("button", name="Import").click()


async def _new_view(page: Page, places: dict[str, str]) -> None:
    await go(page, places["views"])
    await page.get_by_role("button", name="New view").click()


async def _edit_view(page: Page, places: dict[str, str]) -> None:
    await go(page, places["views"])
    await page.locator(".view-shown").get_by_role("button", name="Edit", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()


async def _palette(page: Page, places: dict[str, str]) -> None:
    await go(page, places["agenda-week"])
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Search and commands").fill("garden")
    await expect(page.get_by_role("group", name="Messages").get_by_role("option").first).to_be_visible()


async def _shortcuts(page: Page, places: dict[str, str]) -> None:
    await go(page, places["agenda-week"])
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("New session")


DIALOGS: dict[str, Open] = {
    "edit": _edit,
    "schedule": _schedule,
    "pause-menu": _pause_menu,
    "pause-until": _pause_until,
    "session-menu": _session_menu,
    "rename-session": _rename_session,
    "delete-session": _delete_session,
    "connect": _connect,
    "connect-form": _connect_form,
    "new-agent": _new_agent,
    "delete-agent": _delete_agent,
    "erase": _erase,
    "row": _open_row,
    "edit-row": _edit_row,
    "new-row": _new_row,
    "filter": _filter,
    "import": _import,
    "new-view": _new_view,
    "edit-view": _edit_view,
    "palette": _palette,
    "shortcuts": _shortcuts,
}
