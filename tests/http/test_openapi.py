"""Generated requests to every operation of the whole server: nothing breaks, and every answer is as described."""

import asyncio
import base64
import contextlib
import re
import threading
import time
from collections import Counter

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from pydantic import SecretStr
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from asgi_client import asgi_server
from fixtures.stores import IS_LONG
from wakeful.app.building import build
from wakeful.app.http import build_http, welcome
from wakeful.config.settings import Settings
from wakeful.telemetry.recent_logs import MAX_WAIT_SECONDS

TOKEN = "a-token-for-all-tests"
RIGHT, WRONG = (60, 60) if IS_LONG else (5, 2)  # requests to each operation
PIXEL = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
# The first is tested in test_auth_gate.py. The second assumes that the schema says everything, but not that a time has
# passed, a zone does not exist, a text is not an image.
UNFIT = [ignored_auth, positive_data_acceptance]
# Operations that delete what other requests need come last.
LAST = ("DELETE",)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A whole server with the demo model in a thread of its own, since schemathesis waits for its answers."""
    folder = tmp_path_factory.mktemp("openapi")
    node = build(
        Settings(data_dir=folder / "data", config_dir=folder / "config", store_encryption=False, token=SecretStr(TOKEN))
    )
    ready, found, stop = threading.Event(), [], asyncio.Event()

    async def serve():
        async with node.running():
            await welcome(node)
            async with asgi_server(build_http(node)) as port:
                found.extend((port, asyncio.get_running_loop()))
                ready.set()
                await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    port, loop = found
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def known(address):
    """One of everything that has an id, by the name of the path parameter that takes it. Requests add to it."""
    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, verify=False
    ) as client:

        def said(method, path, **request):
            answer = client.request(method, path, **request)
            assert answer.is_success, answer.text
            return answer.json()

        session = said("POST", "/sessions", json={"title": "A talk"})["id"]
        message = {"content": "in 3 hours check notes.txt", "images": [PIXEL]}
        run = said("POST", f"/sessions/{session}/messages", json=message)["run_id"]
        end = time.monotonic() + 20
        while said("GET", f"/runs/{run}")["status"] != "success":
            assert time.monotonic() < end
            time.sleep(0.05)
        shown = said("GET", f"/sessions/{session}")
        database = f"/agents/{shown['agent_id']}/db"
        said("POST", f"{database}/import", json={"table": "notes", "text": "note\nhello"})
        said("PUT", f"{database}/views/all_notes", json={"sql": "SELECT note FROM notes"})
        model = {"provider": "openai-chat", "model": "m", "address": "http://127.0.0.1:1/v1", "check": False}
        later = {"kind": "message", "delay_ms": 3_600_000, "message": "Read notes.txt with read_file."}
        hook = {"name": "Deploys", "scheme": "github", "instructions": "Read it."}
        found = {
            # One of the server's own making: after ten wrong login codes, one that a person chose has to wait.
            "secret": said("POST", "/tokens", json={"name": "Schema", "scope": "admin"})["secret"],
            "agent_id": shown["agent_id"],
            "path": "AGENTS.md",
            "name": said("POST", "/models", json=model)["name"],
            "image_id": shown["messages"][0]["images"][0]["id"],
            "hook_id": said("POST", f"/agents/{shown['agent_id']}/hooks", json=hook)["id"],
            "run_id": run,
            "schedule_id": said("POST", f"/sessions/{session}/schedules", json=later)["schedule"]["id"],
            "session_id": session,
            "table": "notes",
            "token_id": said("POST", "/tokens", json={"name": "Another", "scope": "read"})["token"]["id"],
            "user_id": said("POST", "/users", json={"name": "Another"})["id"],
            "view": "all_notes",
            "wake_id": shown["recall"]["id"],
        }
        return {name: [value] for name, value in found.items()}


def test_the_page_about_the_api_names_every_route_and_loads_nothing_from_elsewhere(address):
    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, verify=False
    ) as client:
        shown, described = client.get("/docs"), client.get("/openapi.json").json()
    assert [path for path in described["paths"] if f" {path}<" not in shown.text] == []
    assert "<script" not in shown.text
    assert re.findall(r'(?:src|href|action)="(?!/)', shown.text) == []
    assert "default-src 'none'" in shown.headers["content-security-policy"]


@pytest.mark.whole
def test_every_answer_is_as_the_description_says(address, known):
    headers = {"Authorization": f"Bearer {known['secret'][0]}"}
    described = httpx.get(f"{address}/openapi.json", headers=headers, timeout=60, verify=False).json()
    for methods in described["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)  # every request comes with our token, so wrong ones are not to be made up
    schema = schemathesis.openapi.from_dict(described)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 30
    answers = Counter()
    ends = [path.rpartition("/") for path in described["paths"] if path.endswith("}")]
    takes = {start: end.strip("{}") for start, _, end in ends}
    before = {name: len(values) for name, values in known.items()}
    for operation in sorted(operations, key=_order):
        right, wrong = (
            operation.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        )
        _try(right, RIGHT, address, headers, answers, known, takes)
        if operation.label not in _accepted(answers) | HARD_TO_PLEASE:  # it takes more luck than a few requests have
            _try(right, 10 * RIGHT, address, headers, answers, known, takes)
        _try(wrong, WRONG, address, headers, answers, {}, {})
    assert {operation.label for operation in operations} - _accepted(answers) <= HARD_TO_PLEASE
    used = {name for name, values in known.items() if len(values) > before[name]}
    assert {"agent_id", "session_id", "token_id", "user_id"} <= used  # made by one request, and used by others


def _accepted(answers):
    return {label for label, status in answers if status < 400}


def _order(operation):
    """Sort operations: those that create first, those that delete last."""
    makes = operation.method.upper() == "POST" and "{" not in operation.path
    return operation.method.upper() in LAST, not makes, -operation.path.count("/")


# A generator cannot guess these: a login code, a run that was cut off or woken, a recall that waits or recurs,
# something unread in the inbox, a call that was asked about, words that mean a time, a next run that waits, the address
# of a channel, a browser or a model's endpoint, SQL, the name of a column or an agent.
HARD_TO_PLEASE = {
    "POST /v1/chat/completions",
    "POST /nodes/{node_id}/drain",  # an embedded store has no other node
    "POST /nodes/{node_id}/undrain",
    "DELETE /agents/{agent_id}/db",
    "DELETE /agents/{agent_id}/next-run",
    "DELETE /channels/{channel_id}",
    "PATCH /channels/{channel_id}",
    "POST /channels",
    "PUT /agents/{agent_id}/next-run",
    "POST /channels/{channel_id}/test",
    "DELETE /schedules/{schedule_id}",
    "DELETE /sessions/{session_id}/recall",
    "DELETE /wakes/{wake_id}",
    "GET /wakes/preview",
    "GET /wakes/{wake_id}/preview",
    "PATCH /sessions/{session_id}/recall",
    "PATCH /wakes/{wake_id}",
    "PATCH /agents/{agent_id}/db/tables/{table}/rows",
    "POST /agents/{agent_id}/instructions/{path}/accept",
    "POST /agents/{agent_id}/db/key",
    "POST /agents/{agent_id}/db/snapshots/{snapshot}/recover",
    "POST /agents/{agent_id}/db/changelog/{change_id}/take-back",
    "POST /agents/{agent_id}/db/execute",
    "POST /agents/{agent_id}/db/import",
    "POST /agents/{agent_id}/db/migrate",
    "POST /agents/{agent_id}/db/query",
    "POST /agents/{agent_id}/db/tables/{table}/columns",
    "POST /agents/{agent_id}/db/tables/{table}/rows",
    "POST /agents/{agent_id}/db/tables/{table}/rows/upsert",
    "POST /agents/{agent_id}/next-run/run-now",
    "POST /agents/{agent_id}/hooks",
    "DELETE /hooks/{hook_id}",  # goes with its agent, which is deleted before
    "POST /hooks/{hook_id}",  # only with a signature
    "GET /hooks/{hook_id}/deliveries/{hook_delivery_id}",
    "POST /webhooks",
    "GET /webhooks/{webhook_id}",
    "PATCH /webhooks/{webhook_id}",
    "DELETE /webhooks/{webhook_id}",
    "POST /webhooks/{webhook_id}/rotate",
    "POST /webhooks/{webhook_id}/test",
    "GET /webhooks/{webhook_id}/deliveries",
    "POST /webhooks/{webhook_id}/deliveries/{webhook_delivery_id}/replay",
    "POST /login",
    "POST /login/renew",  # for browsers
    "DELETE /models/{name}",
    "POST /models",
    "POST /models/list",
    "POST /models/test",
    "PUT /models/default",
    "POST /notifications/{notification_id}/read",
    "DELETE /push-subscriptions/{subscription_id}",
    "POST /push-subscriptions",
    "POST /push-subscriptions/{subscription_id}/test",
    "POST /runs/{run_id}/again",
    "DELETE /agents/{agent_id}/allowances/{allowance_id}",
    "POST /runs/{run_id}/approvals/{call_id}",
    "POST /sessions/{session_id}/messages/{message_id}/retry",
    "POST /runs/{run_id}/continue",
    "POST /sessions/{session_id}/recall",
    "POST /sessions/{session_id}/recall/run-now",
    "POST /sessions/{session_id}/recall/skip",
    "POST /sessions/{session_id}/schedules",
    "POST /wakes/{wake_id}/run-now",
    "POST /wakes/{wake_id}/skip",
    "PUT /agents/{agent_id}/db/views/{view}",
}


def _try(cases, examples, address, headers, answers, known, takes):
    @given(case=cases, data=st.data())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def each(case, data):
        # Ids that nobody has would only ever meet the one answer; so most of the time they are ones that someone has.
        if data.draw(st.integers(0, 3)):
            # The first ones belong together, as a table and its agent do; the others were made by requests.
            is_first = data.draw(st.integers(0, 2)) > 0
            for name in known.keys() & (case.path_parameters or {}).keys():
                which = 0 if is_first else data.draw(st.integers(0, 255))
                case.path_parameters[name] = known[name][which % len(known[name])]
        _hurry(case)
        answer = case.call(base_url=address, headers=headers)
        # 413 is a refusal too, which this check does not know.
        unfit = [*UNFIT, negative_data_rejection] if answer.status_code == 413 else UNFIT
        case.validate_response(answer, headers=headers, excluded_checks=unfit)
        answers[case.operation.label, answer.status_code] += 1
        name = takes.get(case.operation.path)
        if name in known and case.operation.method.upper() == "POST" and answer.status_code < 300:
            known[name].extend(_made(answer.json()))

    # An operation that takes nothing has no wrong requests to make.
    with contextlib.suppress(Unsatisfiable):
        each()


def _hurry(case):
    """Bound how long a good request waits for new lines of the log, which may be longer than we wait for an answer."""
    wait = (case.query or {}).get("wait")
    if case.operation.label == "GET /logs" and isinstance(wait, int | float) and 0.1 < wait <= MAX_WAIT_SECONDS:
        case.query["wait"] = 0.1


def _made(body):
    """Return the id of what an answer says was made."""
    shapes = [body, *(each for each in body.values() if isinstance(each, dict))]
    return [shape["id"] for shape in shapes if "id" in shape][:1]
