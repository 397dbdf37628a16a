"""The table of notices, and every call that makes a notice of a row."""

import ast
from datetime import timedelta
from pathlib import Path
from string import Formatter

import pytest

from harness import NOON
from wakeful.core.types import User
from wakeful.notices import texts
from wakeful.notices.texts import TEMPLATES, make_notice

SOURCE = Path(__file__).parents[2] / "src/wakeful"
OWNER = User(id="u1", name="Ann", role="owner", created_at=NOON)


def facts_of(kind):
    """Return the facts that a row needs."""
    template = TEMPLATES[kind]
    found = Formatter().parse(template.title + template.body + template.once)
    return {field.partition(".")[0] for _, field, _, _ in found if field} - {"about", "now"}


def calls():
    """Return place, rows and facts of every call of `make_notice`."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in ast.walk(function):
                    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "make_notice":
                        kinds = kinds_in(call.args[0], function)
                        facts = {each.arg for each in call.keywords}
                        yield pytest.param(kinds, facts, id=f"{path.relative_to(SOURCE)}:{call.lineno}")


def kinds_in(node, function):
    if isinstance(node, ast.IfExp):
        return kinds_in(node.body, function) | kinds_in(node.orelse, function)
    if isinstance(node, ast.Constant):
        return {node.value}
    if node.id.isupper():
        return {getattr(texts, node.id)}
    [assigned] = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and [getattr(target, "id", "") for target in each.targets] == [node.id]
    ]
    return kinds_in(assigned, function)


CALLS = list(calls())


@pytest.mark.parametrize(("kinds", "facts"), CALLS)
def test_each_call_gives_the_facts_that_its_text_names(kinds, facts):
    assert facts == set().union(*map(facts_of, kinds))


def test_each_row_is_used():
    assert {kind for call in CALLS for kind in call.values[0]} == TEMPLATES.keys()


def test_a_time_stays_a_field_of_the_body_for_the_zone_of_each_reader():
    last = NOON - timedelta(days=1)
    notice = make_notice("backup_failed", OWNER, NOON, error="Its disk {is} full.", last=last)
    assert notice.body == "Its disk {is} full. The last one is of {last}."
    assert notice.times == {"last": last.isoformat()}


def test_long_lists_are_cut():
    notice = make_notice("files_damaged", OWNER, NOON, paths=[f"{number}.txt" for number in range(22)])
    assert "19.txt and 2 more. Nothing was deleted." in notice.body
