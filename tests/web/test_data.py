"""Agents' databases on the page: rows, schema, views, charts, changes and undo."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.visits import send
from live_server import eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SERVER = {"model": "demo", "agent_database_mb": 1}

TASKS = "title,cost,note\nmilk,2,\nbread,3,fresh\ntea,5,green\nbutter,4,\n"


class Keeper:
    """An agent of its own for each test, and its database as REST reaches it."""

    def __init__(self, server, agent):
        self.server = server
        self.id = agent["id"]
        self.name = agent["name"]
        self.place = f"/ui/agents/{self.id}"

    async def call(self, method, path="", **more):
        return await self.server.call(method, f"/agents/{self.id}/db{path}", **more)

    async def load(self, table="tasks", text=TASKS):
        await self.call("POST", "/import", json={"table": table, "text": text})

    async def view(self, name, sql, **more):
        await self.call("PUT", f"/views/{name}", json={"sql": sql} | more)

    async def column(self, name, show="active", table="tasks"):
        found = await self.call("GET", f"/tables/{table}/rows", params={"show": show})
        return [row[found["columns"].index(name)] for row in found["rows"]]

    async def ask(self, text):
        """Send it a message and wait for the answer; return the run."""
        session = await self.server.session(agent_id=self.id)
        asked = {"content": text}
        run = (await self.server.call("POST", f"/sessions/{session}/messages", json=asked))["run_id"]

        async def is_over():
            return (await self.server.run(run))["finished_at"]

        await eventually(is_over)
        return run


@pytest_asyncio.fixture(loop_scope="session")
async def keeper(server):
    return Keeper(server, await server.call("POST", "/agents", json={"name": "Keeper", "toolsets": ["database"]}))


def rows_of(page):
    return page.locator("tbody tr")


async def download(page, link):
    async with page.expect_download() as taken:
        await link.click()
    found = await taken.value
    return found.suggested_filename, (await found.path()).read_text()


# ── From the first memory to a chart ────────────────────────────────────────────────────────────────────────────────


async def test_what_an_agent_is_told_to_remember_is_seen_drawn_and_taken_back(server, keeper, come):
    async with come(f"{keeper.place}/home") as page:
        await expect(page.get_by_role("heading", name="Keeper has stored nothing yet")).to_be_visible()
        await page.locator("header").get_by_role("link", name="New session").click()
        await send(page, "remember that the plumber comes on Friday")
        await expect(page.locator(".footnote")).to_be_visible()
        await send(page, "draw a chart of memories")
        await expect(page.locator(".footnote")).to_have_count(2)

        await page.goto(f"{server.address}{keeper.place}/home")
        card = page.get_by_role("region", name="How many memories were added each day")
        await expect(card.get_by_role("img")).to_have_attribute(
            "aria-label", re.compile(r"^Bar chart of entries: .* 1$")
        )
        await keeper.ask("remember that the roof leaks")  # in another client; the page updates live
        await expect(card.get_by_role("img")).to_have_attribute("aria-label", re.compile(r" 2$"))
        await card.get_by_text("Show as table").click()
        await expect(card.get_by_role("cell", name="2", exact=True)).to_be_visible()

        await page.get_by_role("link", name="Schema").click()
        await expect(page.get_by_role("region", name="memories", exact=True)).to_contain_text("2 rows")
        host_table = page.get_by_role("heading", name="_changelog", include_hidden=True)
        await expect(host_table).to_be_hidden()
        await page.get_by_text("System tables").click()
        await expect(host_table).to_be_visible()
        await page.get_by_role("link", name="Browse memories").click()
        await expect(page).to_have_url(re.compile(r"/data\?table=memories$"))
        await expect(rows_of(page)).to_have_count(2)
        await keeper.ask("remember that the cat is called Ada")
        await expect(rows_of(page).nth(2)).to_contain_text("the cat is called Ada")

        await page.get_by_role("link", name="Activity").click()
        changed = page.get_by_role("region", name="What it changed")
        await expect(changed).to_contain_text("memories #3")
        await expect(changed).to_contain_text("the cat is called Ada")
        await page.get_by_role("button", name="Undo this run's data").click()
        dialog = page.get_by_role("dialog", name="Undo this run's data?")
        await expect(dialog).to_contain_text("changed since are left")
        await dialog.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("status").filter(has_text="put back")).to_contain_text("1 row was put back.")
    assert await keeper.column("note", table="memories") == ["the plumber comes on Friday", "the roof leaks"]


async def test_each_run_shows_its_own_changes_and_an_undo_tells_which_rows_it_left_alone(keeper, come):
    first = await keeper.ask("remember that the shop closes at six")
    await keeper.ask("remember that two is second")
    change = {"row_ids": [1], "changes": {"note": "the shop closes at seven"}}
    await keeper.call("PATCH", "/tables/memories/rows", json=change)
    async with come(f"{keeper.place}/activity?run={first}") as page:
        changed = page.get_by_role("region", name="What it changed")
        await expect(changed).to_contain_text("the shop closes at six")
        await page.get_by_role("list", name="Runs").get_by_role("button").first.click()
        await expect(changed).to_contain_text("two is second")
        await expect(changed).not_to_contain_text("the shop closes")
        await expect(page).to_have_url(re.compile(r"\?run="))

        await page.get_by_role("list", name="Runs").get_by_role("button").last.click()
        await page.get_by_role("link", name="All steps").click()
        await expect(page).to_have_url(re.compile(f"/ui/runs/{first}$"))
        await expect(changed).to_contain_text("the shop closes at six")
        await expect(changed).not_to_contain_text("seven")  # that was not this run
        await changed.get_by_role("button", name="Undo this run's data").click()
        await page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        report = page.locator(".undo-report")
        await expect(report).to_contain_text("0 rows were put back.")
        await expect(report).to_contain_text(re.compile(r"memories #1: it was changed since, at .*, by the user"))
    assert await keeper.column("note", table="memories") == ["the shop closes at seven", "two is second"]


# ── Data ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_rows_are_filtered_sorted_and_paged_and_the_address_says_which(keeper, come):
    await keeper.load(text="title,cost\n" + "".join(f"item {number},{number}\n" for number in range(120)))
    async with come(f"{keeper.place}/data?table=gone") as page:
        await expect(page.get_by_text("There is no table “gone”")).to_be_visible()
        await page.get_by_label("Table").select_option("tasks")
        await expect(page).to_have_url(re.compile("table=tasks$"))
        await expect(rows_of(page)).to_have_count(50)
        await page.get_by_role("button", name="Next").click()
        await expect(rows_of(page).first).to_contain_text("item 50")
        await page.get_by_role("button", name="cost").click()
        await page.get_by_role("button", name="cost").click()
        await expect(rows_of(page).first).to_contain_text("item 119")
        await expect(page.get_by_role("columnheader", name="cost")).to_have_attribute("aria-sort", "descending")
        bar = page.get_by_role("search", name="Filter")
        await expect(bar).to_have_count(0)
        await page.get_by_role("button", name="Filter").click()
        await bar.get_by_label("Column").select_option("cost")
        await bar.get_by_label("Comparison").select_option("is less than")
        await bar.get_by_label("Value").fill("10")  # as a number: as a text, 100 would come before it
        await bar.get_by_label("Value").press("Enter")
        await expect(rows_of(page)).to_have_count(10)
        await expect(rows_of(page).first).to_contain_text("item 9")
        await page.reload()
        await expect(rows_of(page)).to_have_count(10)
        await expect(rows_of(page).first).to_contain_text("item 9")
        await expect(page.get_by_role("list", name="Conditions")).to_have_text("cost is less than 10")
        await page.get_by_role("button", name="Filter").click()
        await bar.get_by_label("Value").fill("-1")
        await bar.get_by_role("button", name="Apply").click()
        await page.get_by_role("button", name="Show all").click()
        await expect(rows_of(page)).to_have_count(50)


async def test_a_person_adds_opens_edits_and_deletes_a_row(keeper, come):
    await keeper.load()
    async with come(f"{keeper.place}/data?table=tasks") as page:
        await page.get_by_role("button", name="Add row").click()
        dialog = page.get_by_role("dialog", name="Add a row to tasks")
        await dialog.get_by_label("title").fill("jam")
        await dialog.get_by_label("cost").fill("seven")
        await dialog.get_by_role("button", name="Add").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("cannot store TEXT value in INTEGER column")
        await dialog.get_by_label("cost").fill("7")
        await dialog.get_by_role("button", name="Add").click()
        await expect(rows_of(page)).to_have_count(5)
        await expect(rows_of(page).nth(4).locator(".null").first).to_have_text("–null")

        await page.get_by_role("button", name="Open row 5").press("Enter")
        dialog = page.get_by_role("dialog", name="tasks #5")
        await dialog.get_by_role("button", name="Edit").click()
        await dialog.get_by_label("note").fill("plum")
        await dialog.get_by_label("cost").fill("8")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_contain_text("plum")
        await dialog.get_by_text("History").click()
        await expect(dialog.locator(".changes > li")).to_have_count(2)
        await expect(dialog.locator(".difference").first).to_contain_text("7 → 8")
        await dialog.get_by_role("button", name="Edit").click()
        await dialog.get_by_role("button", name="Set to null for note").click()
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.locator(".row-values .null").first).to_have_text("–null")
        await dialog.get_by_role("button", name="Delete").click()
        await expect(dialog).to_have_count(0)
        await expect(rows_of(page)).to_have_count(4)
    assert await keeper.column("cost", show="deleted") == [8]
    assert await keeper.column("note", show="deleted") == [None]


async def test_rows_are_deleted_together_shown_dimmed_restored_and_exported_as_csv(keeper, come):
    await keeper.load()
    async with come(f"{keeper.place}/data?table=tasks") as page:
        await page.get_by_label("Row 1", exact=True).check()
        await page.get_by_label("Row 3", exact=True).check()
        await page.get_by_role("button", name="Delete 2").click()
        await expect(rows_of(page)).to_have_count(2)
        await page.get_by_role("button", name="Undo").click()
        await expect(rows_of(page)).to_have_count(4)
        await page.get_by_label("All rows on this page").check()
        await page.get_by_label("Row 2", exact=True).uncheck()
        await page.get_by_role("button", name="Delete 3").click()
        await expect(rows_of(page)).to_have_count(1)
        assert await keeper.column("title") == ["bread"]

        await page.get_by_role("button", name="All", exact=True).click()
        await expect(rows_of(page)).to_have_count(4)
        await expect(page.locator("tr.is-deleted")).to_have_count(3)
        seen = "row => getComputedStyle(row.querySelector('td:nth-child(3)')).color"
        assert await rows_of(page).first.evaluate(seen) != await rows_of(page).nth(1).evaluate(seen)
        await page.get_by_role("button", name="Deleted", exact=True).click()
        await expect(page).to_have_url(re.compile("show=deleted"))
        name, text = await download(page, page.get_by_role("button", name="CSV"))
        assert (name, text.splitlines()[1].split(",")[1]) == ("tasks.csv", "milk")
        assert "bread" not in text
        await page.get_by_label("Row 1", exact=True).check()
        await page.get_by_role("button", name="Restore 1").click()
        await expect(rows_of(page)).to_have_count(2)
        await page.get_by_role("button", name="Active").click()
        await expect(rows_of(page)).to_have_count(2)
    assert await keeper.column("title") == ["milk", "bread"]


async def test_long_values_and_json_are_short_in_the_table_and_whole_when_opened(keeper, come):
    long = "word " * 100
    await keeper.load(text="title\nx\n")
    values = [{"title": long}, {"title": json.dumps({"a": {"b": [1, 2]}})}]
    await keeper.call("POST", "/tables/tasks/rows", json={"rows": values})
    async with come(f"{keeper.place}/data?table=tasks") as page:
        shown = rows_of(page).nth(1).get_by_role("cell").nth(2)
        await expect(shown).to_contain_text("word word")
        assert len(await shown.inner_text()) < 120
        await shown.click()  # the whole row opens
        await expect(page.get_by_role("dialog", name="tasks #2")).to_contain_text(long.strip())
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await rows_of(page).nth(2).get_by_text('{"a"').click()
        await expect(page.get_by_role("dialog").locator("code")).to_have_text(re.compile(r'"a": \{\n    "b": \['))


TYPED = {
    "name": "jobs",
    "purpose": "Things to do.",
    "columns": [
        {"name": "title", "type": "text"},
        {"name": "done", "type": "boolean", "default": False},
        {"name": "due", "type": "date"},
        {"name": "at", "type": "datetime"},
        {"name": "more", "type": "json"},
    ],
}


@pytest_asyncio.fixture(loop_scope="session")
async def jobs(keeper):
    """An agent with a table that has a column of each kind."""
    await keeper.call("POST", "/tables", json=TYPED)
    rows = [
        {"title": "sow peas", "done": True, "due": "2026-10-30", "more": '{"beds":2}'},
        {"title": "sow beans", "due": "2026-11-25", "at": "2026-11-24T08:00:00Z"},
        {"title": "prune"},
    ]
    await keeper.call("POST", "/tables/jobs/rows", json={"rows": rows})
    return keeper


async def test_values_are_shown_and_edited_by_their_declared_types(jobs, come):
    async with come(f"{jobs.place}/schema", timezone_id="Europe/Berlin") as page:
        types = page.get_by_role("region", name="jobs").locator("tbody tr:not(.is-system) td:nth-child(2)")
        await expect(types).to_have_text(["integer", "text", "boolean", "date", "datetime", "json"])
        await page.get_by_role("link", name="Browse jobs").click()
        await expect(page.get_by_role("columnheader")).to_have_text(
            ["", "id", "title", "done", "due", "at", "more", "changed"]
        )
        done = page.get_by_label("done of row 2")
        await expect(done).not_to_be_checked()
        await done.check()
        await expect(done).to_be_enabled()
        await expect(done).to_be_checked()

        await rows_of(page).nth(1).get_by_text("sow beans").click()
        dialog = page.get_by_role("dialog", name="jobs #2")
        await expect(dialog).to_contain_text("yes")
        await dialog.get_by_role("button", name="Edit").click()
        await expect(dialog.get_by_label("done")).to_be_checked()
        await dialog.get_by_label("due").fill("2026-12-01")
        await expect(
            dialog.get_by_label("at", exact=False).and_(dialog.locator("[type=datetime-local]"))
        ).to_have_value("2026-11-24T09:00")
        await dialog.locator("[type=datetime-local]").fill("2026-11-24T10:30")
        await dialog.get_by_label("more").fill("{beds: 3}")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("This is not JSON")
        await dialog.get_by_label("more").fill('{"beds":90071992547409931}')
        await dialog.get_by_role("button", name="Format more").click()
        await expect(dialog.get_by_label("more")).to_have_value('{\n  "beds": 90071992547409931\n}')
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("button", name="Edit")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Add row").click()
        dialog = page.get_by_role("dialog", name="Add a row to jobs")
        await expect(dialog).to_contain_text("default no")
        await dialog.get_by_label("title").fill("rake")
        await dialog.get_by_label("done").check()
        await dialog.get_by_role("button", name="Add").click()
        await expect(rows_of(page)).to_have_count(4)
    assert await jobs.column("done", table="jobs") == [1, 1, 0, 1]
    assert (await jobs.column("due", table="jobs"))[1] == "2026-12-01"
    assert (await jobs.column("at", table="jobs"))[1] == "2026-11-24T09:30:00Z"
    assert json.loads((await jobs.column("more", table="jobs"))[1]) == {"beds": 90071992547409931}


async def test_a_filter_has_several_conditions_that_are_removed_one_by_one(jobs, come):
    async with come(f"{jobs.place}/data?table=jobs") as page:
        await page.get_by_role("button", name="Filter").click()
        bar = page.get_by_role("search", name="Filter")
        await bar.get_by_label("Value").fill("sow")
        await bar.get_by_role("button", name="Add condition").click()
        second = bar.get_by_role("group", name="Condition 2")
        await second.get_by_label("Column").select_option("done")
        await second.get_by_label("Value").select_option("no")
        await bar.get_by_role("button", name="Apply").click()
        await expect(rows_of(page)).to_have_count(1)
        await expect(rows_of(page)).to_contain_text("sow beans")
        await expect(page.get_by_text("1 row", exact=True)).to_be_visible()
        await page.reload()
        chips = page.get_by_role("list", name="Conditions").get_by_role("listitem")
        await expect(chips).to_have_text(["title contains sow", "done is no"])
        await page.get_by_role("button", name="Remove “done is no”").click()
        await expect(rows_of(page)).to_have_count(2)
        await page.get_by_role("button", name="Filter").click()
        await bar.get_by_label("Column").select_option("due")
        await bar.get_by_label("Comparison").select_option("is before")
        await bar.get_by_label("Value").fill("2026-11-01")
        await bar.get_by_label("Value").press("Enter")
        await expect(rows_of(page)).to_have_count(1)
        await expect(rows_of(page)).to_contain_text("sow peas")


async def test_the_times_of_a_row_take_one_column_and_a_deletion_shows_only_with_deleted_rows(jobs, come):
    await jobs.call("POST", "/tables/jobs/rows/delete", json={"row_ids": [3]})
    async with come(f"{jobs.place}/data?table=jobs") as page:
        heads = page.get_by_role("columnheader")
        await expect(heads.filter(has_text="changed")).to_have_count(1)
        await expect(heads.filter(has_text="deleted")).to_have_count(0)
        await page.get_by_role("button", name="All", exact=True).click()
        await expect(heads.filter(has_text="deleted")).to_have_count(1)


PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}


async def test_on_a_phone_rows_are_cards_and_their_controls_in_one_sheet(jobs, come):
    async with come(f"{jobs.place}/data?table=jobs", **PHONE) as page:
        cards = page.get_by_role("list", name="Rows of jobs").get_by_role("listitem")
        await expect(cards).to_have_count(3)
        assert await page.evaluate("document.documentElement.scrollWidth") == 320
        top = (await cards.first.bounding_box())["y"] - (await page.get_by_label("Table").bounding_box())["y"]
        assert top < 70  # one row of controls
        await page.get_by_role("button", name="Options").tap()
        sheet = page.get_by_role("dialog", name="Show jobs")
        await sheet.get_by_label("Sort by").select_option("title")
        await sheet.get_by_label("Value").fill("sow")
        await sheet.get_by_role("button", name="Apply").tap()
        await expect(sheet).to_have_count(0)
        await expect(cards).to_have_count(2)
        await expect(cards.first).to_contain_text("sow beans")
        await cards.first.get_by_text("2026-11-25").tap()
        await expect(page.get_by_role("dialog", name="jobs #2")).to_be_visible()


async def test_a_file_is_imported_by_hand_into_a_new_table_and_into_one_that_is_there(keeper, come, tmp_path):
    csv, lines, bad = tmp_path / "My tasks 2026.csv", tmp_path / "more.jsonl", tmp_path / "bad.json"
    csv.write_text(TASKS)
    lines.write_text('{"title": "jam", "cost": 6}\n')
    bad.write_text("not JSON")
    async with come(f"{keeper.place}/data") as page:
        await page.get_by_role("button", name="Import a file").click()
        dialog = page.get_by_role("dialog", name="Import a file")
        await dialog.get_by_label("File").set_input_files(csv)
        await expect(dialog.get_by_label("Table")).to_have_value("my_tasks_2026")
        await dialog.get_by_role("button", name="Import").click()
        await expect(rows_of(page)).to_have_count(4)
        await expect(page).to_have_url(re.compile(r"/data\?table=my_tasks_2026$"))
        await page.get_by_role("button", name="Import").click()
        await dialog.get_by_label("File").set_input_files(bad)
        await dialog.get_by_role("button", name="Import").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("JSON")
        await dialog.get_by_label("File").set_input_files(lines)
        await dialog.get_by_role("button", name="Import").click()
        await expect(dialog).to_contain_text("1 row imported into my_tasks_2026.")
        await dialog.get_by_role("button", name="Show rows").click()
        await expect(rows_of(page)).to_have_count(5)
    assert await keeper.column("title", table="my_tasks_2026") == ["milk", "bread", "tea", "butter", "jam"]


async def test_typing_the_agents_name_erases_its_database(server, keeper, come):
    await keeper.load()
    key = server.node.settings.data_dir / "agents" / keeper.id / "db.key"
    before = key.read_bytes()
    async with come(f"{keeper.place}/configure") as page:
        kept = page.get_by_role("region", name="Database")
        await kept.get_by_role("button", name="Rotate key").click()
        await page.get_by_role("dialog", name="Rotate the key?").get_by_role("button", name="Rotate").click()
        await expect(kept).to_contain_text("The key was rotated.")
        assert key.read_bytes() != before
        assert await keeper.column("title") == ["milk", "bread", "tea", "butter"]
        await kept.get_by_role("button", name="Erase data").click()
        dialog = page.get_by_role("dialog", name=f"Erase the data of {keeper.name}?")
        await dialog.get_by_role("textbox").fill("keeper")
        await expect(dialog.get_by_role("button", name="Erase")).to_be_disabled()
        await dialog.get_by_role("textbox").fill(keeper.name)
        await dialog.get_by_role("button", name="Erase").click()
        await expect(kept).to_contain_text("Everything was erased.")
    assert (await keeper.call("GET"))["state"] == "none"


async def test_a_migration_is_reverted_where_it_is_listed(server, keeper, come):
    await keeper.load()
    run = await keeper.ask("remember that migrations can be taken back")
    data = server.node.services.data
    [user] = [each for each in (await server.call("GET", "/users"))["users"] if each["role"] == "owner"]
    by = replace(await data.person(keeper.id, user["id"]), run_id=run)
    await data.run(
        by,
        "migrate",
        purpose="A colour",
        up_sql="ALTER TABLE tasks ADD COLUMN colour TEXT",
        down_sql="ALTER TABLE tasks DROP COLUMN colour",
    )
    async with come(f"{keeper.place}/activity?run={run}") as page:
        await page.get_by_role("button", name="Revert").click()
        dialog = page.get_by_role("dialog", name="Revert this migration?")
        await expect(dialog).to_contain_text("DROP COLUMN colour")
        await dialog.get_by_role("button", name="Revert").click()
        await expect(page.get_by_text("Reverted.")).to_be_visible()
    found = await keeper.call("GET", "/tables/tasks/rows")
    assert "colour" not in found["columns"]


# ── Views and Home ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_person_writes_a_view_with_a_parameter_tries_pins_and_deletes_it(keeper, come):
    await keeper.load()
    async with come(f"{keeper.place}/home") as page:
        await expect(page.get_by_text("draw a chart of tasks")).to_be_visible()
        await page.locator(".empty").get_by_role("link", name="Views").click()
        await page.get_by_role("button", name="New view").click()
        dialog = page.get_by_role("dialog", name="New view")
        await dialog.get_by_label("Name", exact=True).fill("dear")
        await dialog.get_by_label("SQL").fill(
            "SELECT title, cost FROM tasks WHERE cost >= :least AND note IS NOT ':no'"
        )
        await expect(dialog.get_by_label(re.compile("^Default for"))).to_have_count(1)
        await dialog.get_by_label("Default for least").fill("4")
        await dialog.get_by_role("button", name="Preview").click()
        await expect(dialog.locator("tbody tr")).to_have_count(2)
        await dialog.get_by_role("button", name="Save").click()
        await expect(page).to_have_url(re.compile(r"\?view=dear$"))
        await expect(rows_of(page)).to_have_count(2)
        await expect(page.locator("figure.code")).to_contain_text("WHERE cost >= :least")
        await expect(page.get_by_label("least")).to_have_attribute("placeholder", "4")
        await page.get_by_label("least").fill("3")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(rows_of(page)).to_have_count(3)
        _, text = await download(page, page.get_by_role("button", name="CSV"))
        assert len(text.splitlines()) == 4

        await page.get_by_label("Chart type").select_option("pie")
        await expect(page.get_by_role("img", name=re.compile("^Pie chart of cost"))).to_be_visible()
        await page.get_by_role("button", name="Pin to Home").click()
        await expect(page.get_by_role("list", name="Views")).to_contain_text("pinned")
        await page.get_by_role("link", name="Home", exact=True).click()
        card = page.get_by_role("region", name="Dear")
        await expect(card.locator(".slice")).to_have_count(2)  # with the default
        await card.get_by_role("link", name="Dear").click()
        await expect(page).to_have_url(re.compile(r"/views\?view=dear$"))
        await page.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog", name="Edit dear")
        await dialog.get_by_label("Default for least").fill("5")
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.locator(".slice")).to_have_count(1)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="No views yet")).to_be_visible()
    assert (await keeper.call("GET", "/views"))["views"] == []


async def test_pinned_views_are_drawn_as_their_hint_says_and_can_be_unpinned(keeper, come):
    await keeper.load()
    two = "SELECT title, cost, cost * 2 AS twice FROM tasks"
    await keeper.view("as_table", "SELECT title, note FROM tasks", render="table", pinned=True)
    await keeper.view("as_bar", two, render="bar", pinned=True)
    await keeper.view("as_line", two, render="line", pinned=True)
    await keeper.view("as_pie", two, render="pie", pinned=True)
    await keeper.view("as_number", "SELECT sum(cost) AS total FROM tasks", render="number", pinned=True)
    await keeper.view("no_numbers", "SELECT title, note FROM tasks", render="bar", pinned=True)
    asks = {"parameters": [{"name": "least"}], "pinned": True}
    await keeper.view("asks", "SELECT title FROM tasks WHERE cost > :least", **asks)
    await keeper.view("aside", "SELECT 1")
    async with come(f"{keeper.place}/home") as page:
        card = {name: page.get_by_role("region", name=name, exact=True).first for name in ("As table", "As bar")}
        await expect(card["As table"].locator("tbody tr")).to_have_count(4)
        await expect(card["As table"].locator(".null").first).to_have_text("–null")
        await expect(card["As bar"].locator("rect")).to_have_count(8)
        await expect(card["As bar"].locator(".legend li")).to_have_text(["cost", "twice"])
        await expect(page.get_by_role("region", name="As line").first.locator("polyline")).to_have_count(2)
        await expect(page.get_by_role("region", name="As pie").first.locator(".slice")).to_have_count(4)
        await expect(page.get_by_role("region", name="As number").first.locator("dd")).to_have_text("14")
        await expect(page.get_by_role("region", name="No numbers").first).to_contain_text("needs a column of numbers")
        await expect(page.get_by_role("region", name="Asks").first).to_contain_text("Needs a value for least")
        await expect(page.get_by_text("aside")).to_have_count(0)
        await keeper.call("POST", "/tables/tasks/rows", json={"rows": [{"title": "jam", "cost": 6}]})
        await expect(page.get_by_role("region", name="As number").first.locator("dd")).to_have_text("20")
        await page.get_by_role("button", name="More about As pie").click()
        await page.get_by_role("menuitem", name="Unpin").click()
        await expect(page.get_by_role("region", name="As pie")).to_have_count(0)


# ── What is above the tabs ──────────────────────────────────────────────────────────────────────────────────────────


async def test_the_tabs_come_and_go_with_the_toolset_and_snap_back_to_configure(server, keeper, come):
    await keeper.load()
    async with come(f"{keeper.place}/data?table=tasks") as page:
        tabs = page.get_by_role("navigation", name="Parts of this agent").get_by_role("link")
        await expect(tabs).to_have_text(["Configure", "Home", "Schema", "Data", "Views", "Activity"])
        await server.call("PATCH", f"/agents/{keeper.id}", json={"toolsets": ["files"]})
        await expect(page).to_have_url(re.compile("/configure$"))
        await expect(tabs).to_have_text(["Configure", "Activity"])
        await server.call("PATCH", f"/agents/{keeper.id}", json={"toolsets": ["files", "database"]})
        await expect(tabs).to_have_count(6)
        await tabs.filter(has_text="Data").click()
        await expect(rows_of(page)).to_have_count(4)  # what was kept is still there


async def test_a_write_in_progress_shows_and_its_row_appears(server, keeper, come):
    await keeper.load()
    async with come(f"{keeper.place}/data?table=tasks") as page:
        await expect(rows_of(page)).to_have_count(4)
        badge = page.locator(".writing-badge")
        await expect(badge).to_be_empty()
        # The file is locked, so the write has to wait.
        async with server.node.services.data.files.lock(keeper.id):
            asked = {"rows": [{"title": "late"}]}
            writing = asyncio.create_task(keeper.call("POST", "/tables/tasks/rows", json=asked))
            await expect(badge).to_have_text("writing")
            await expect(rows_of(page)).to_have_count(4)
        await writing
        await expect(rows_of(page)).to_have_count(5)
        await expect(badge).to_be_empty()


async def test_a_database_that_is_nearly_full_says_so_on_every_tab(keeper, come):
    await keeper.load(text="a\nx\n")
    async with come(f"{keeper.place}/schema") as page:
        await expect(page.get_by_role("region", name="tasks", exact=True)).to_be_visible()
        banner = page.get_by_role("region", name="Database size")
        await expect(banner).to_have_count(0)
        found = await keeper.call("GET")
        while found["used_bytes"] < 0.82 * found["quota_bytes"]:
            await keeper.call("POST", "/tables/tasks/rows", json={"rows": [{"a": "x" * 40_000}]})
            found = await keeper.call("GET")
        await expect(banner).to_contain_text(re.compile(r"(8|9)\d % of the database is used: .* of 1 MB"))
        await page.get_by_role("link", name="Configure").click()
        await expect(banner).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("link", name="Keeper's database is").click()
        await expect(page).to_have_url(re.compile(f"{keeper.place}/data$"))


async def test_a_locked_database_says_what_to_do_and_opens_when_its_key_is_back(server, keeper, come):
    await keeper.load()
    [key] = (server.node.settings.data_dir / "agents" / keeper.id).glob("db.key")
    key.rename(key.with_suffix(".aside"))
    async with come(f"{keeper.place}/data?table=tasks") as page:
        await expect(page.get_by_role("heading", name="This database is locked")).to_be_visible()
        await expect(page.locator(".unlock-steps")).to_contain_text("device.key")
        for tab in ("Home", "Schema", "Views"):
            await page.get_by_role("link", name=tab, exact=True).click()
            await expect(page.get_by_role("heading", name="This database is locked")).to_be_visible()
        key.with_suffix(".aside").rename(key)
        await page.get_by_role("link", name="Data").click()
        await page.get_by_role("button", name="Try again").click()
        await expect(rows_of(page)).to_have_count(4)
