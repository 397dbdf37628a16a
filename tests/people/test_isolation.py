"""Two users on one server: neither can read or change the other's data, through any route or socket.

The routes come from the server's own description. A new one fails the first test until it is written down here, and
from then on it is tried like all the others.
"""

import asyncio
import base64
import itertools
import json
import re
import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

import apsw
import asyncpg
import httpx
import pytest
from fastapi.routing import APIWebSocketRoute
from pydantic import SecretStr
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from asgi_client import asgi_server
from harness import eventually
from network.push_service import Browser
from network.raw_requests import send_raw
from wakeful.app.building import Wakeful, build
from wakeful.app.http import application, build_http, welcome
from wakeful.config.settings import Settings
from wakeful.core.records import Allowance, Approval, Outgoing, ReceivedDelivery
from wakeful.core.types import Channel, Notice, PushSubscription
from wakeful.datadir.device_key import database_of
from wakeful.store.store import Tx

TOKEN = "a-token-for-all-tests"
ON_SQLITE = pytest.mark.parametrize("shared_settings", ["sqlite"], indirect=True)  # where the store plays no part
# An owner is a caller like any other to the store, so one of the two is enough for that.
WHO = pytest.mark.parametrize(
    ("shared_settings", "who"),
    [("sqlite", "bob"), ("sqlite", "owner"), ("postgres", "bob")],
    indirect=["shared_settings"],
)
SCOPES = ("read", "chat", "schedule", "admin")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

# Every path with its methods, and the least scope that each takes; open: to all, and about nobody.
# DELETE /tokens/{token_id} with less than admin is for the token it comes with alone.
_NEEDS = """
/about GET read
/agenda GET read
/agents GET read  POST admin
/agents/{agent_id} GET read  PATCH admin  DELETE admin
/agents/{agent_id}/db GET read  DELETE admin
/agents/{agent_id}/db/changelog GET read
/agents/{agent_id}/db/changelog/{change_id}/take-back POST admin
/agents/{agent_id}/db/execute POST chat
/agents/{agent_id}/db/import POST chat
/agents/{agent_id}/db/migrate POST admin
/agents/{agent_id}/db/query POST read
/agents/{agent_id}/db/key POST admin
/agents/{agent_id}/db/rotate-key POST admin
/agents/{agent_id}/instructions GET read
/agents/{agent_id}/instructions/{path} PUT admin
/agents/{agent_id}/instructions/{path}/accept POST admin
/agents/{agent_id}/db/snapshots GET read
/agents/{agent_id}/db/snapshots/{snapshot}/recover POST admin
/agents/{agent_id}/db/schema GET read
/agents/{agent_id}/db/tables POST chat
/agents/{agent_id}/db/tables/{table}/columns POST chat
/agents/{agent_id}/db/tables/{table}/export GET read
/agents/{agent_id}/db/tables/{table}/rows GET read  POST chat  PATCH chat
/agents/{agent_id}/db/tables/{table}/rows/delete POST chat
/agents/{agent_id}/db/tables/{table}/rows/restore POST chat
/agents/{agent_id}/db/tables/{table}/rows/upsert POST chat
/agents/{agent_id}/db/verify GET read
/agents/{agent_id}/db/views GET read
/agents/{agent_id}/db/views/{view} PUT chat  DELETE chat
/agents/{agent_id}/db/views/{view}/export GET read
/agents/{agent_id}/db/views/{view}/pin PUT chat
/agents/{agent_id}/db/views/{view}/run POST read
/agents/{agent_id}/next-run GET read  PUT schedule  DELETE schedule
/agents/{agent_id}/next-run/run-now POST schedule
/agents/{agent_id}/pause GET read  PUT schedule  DELETE schedule
/agents/{agent_id}/test-model POST admin
/agents/{agent_id}/usage GET read
/agents/{agent_id}/allowances GET read
/agents/{agent_id}/allowances/{allowance_id} DELETE admin
/approvals GET read
/backups GET read  POST admin
/channels GET read  POST admin
/channels/{channel_id} PATCH admin  DELETE admin
/channels/{channel_id}/test POST admin
/hooks GET read
/agents/{agent_id}/hooks POST admin
/hooks/{hook_id} GET read  PATCH admin  DELETE admin  POST open
/hooks/{hook_id}/rotate POST admin
/hooks/{hook_id}/test POST admin
/hooks/{hook_id}/deliveries GET read
/hooks/{hook_id}/deliveries/{hook_delivery_id} GET read
/webhooks GET read  POST admin
/webhooks/{webhook_id} GET read  PATCH admin  DELETE admin
/webhooks/{webhook_id}/rotate POST admin
/webhooks/{webhook_id}/test POST admin
/webhooks/{webhook_id}/deliveries GET read
/webhooks/{webhook_id}/deliveries/{webhook_delivery_id}/replay POST admin
/push-subscriptions GET read  POST admin
/push-subscriptions/{subscription_id} DELETE admin
/push-subscriptions/{subscription_id}/test POST admin
/download-tickets POST read
/healthz GET open
/login GET open  POST open
/login/renew POST read
/login-links POST admin
/logout POST read
/logs GET admin
/mcp-servers GET read
/me GET read
/metrics GET read
/models GET admin  POST admin
/models/default PUT admin
/models/discover POST admin
/models/list POST admin
/models/providers GET admin
/models/test POST admin
/models/{name} GET admin  PATCH admin  DELETE admin
/nodes GET read
/nodes/{node_id}/drain POST admin
/nodes/{node_id}/undrain POST admin
/notifications GET read
/notifications/read POST chat
/notifications/{notification_id}/read POST chat
/pause GET read  PUT schedule  DELETE schedule
/readyz GET read
/runs GET read
/runs/{run_id} GET read
/runs/{run_id}/again POST chat
/runs/{run_id}/approvals GET read
/runs/{run_id}/approvals/{call_id} POST chat
/runs/{run_id}/continue POST chat
/runs/{run_id}/events GET read
/runs/{run_id}/stop POST chat
/runs/{run_id}/undo-data POST chat
/schedules/{schedule_id} GET read  DELETE schedule
/search GET read
/sessions GET read  POST chat
/sessions/{session_id} GET read  PATCH chat  DELETE chat
/sessions/{session_id}/export.md GET read
/sessions/{session_id}/images/{image_id} GET read
/sessions/{session_id}/messages/{message_id}/retry POST chat
/sessions/{session_id}/messages POST chat
/sessions/{session_id}/recall GET read  POST schedule  PATCH schedule  DELETE schedule
/sessions/{session_id}/recall/run-now POST schedule
/sessions/{session_id}/recall/skip POST schedule
/sessions/{session_id}/schedules GET read  POST schedule
/sessions/{session_id}/stop POST chat
/sessions/{session_id}/uploads POST chat
/storage GET read
/tokens GET admin  POST admin
/tokens/{token_id} DELETE read
/tools GET read
/users GET admin  POST admin
/users/{user_id} GET read  PATCH admin  DELETE admin
/v1/chat/completions POST chat
/v1/models GET chat
/v1/models/{model} GET chat
/wakes GET read
/wakes/preview GET read
/wakes/{wake_id} GET read  PATCH schedule  DELETE schedule
/wakes/{wake_id}/run-now POST schedule
/wakes/{wake_id}/skip POST schedule
/wakes/{wake_id}/preview GET read
/wakes/{wake_id}/why GET read
/ws-ticket POST read
/ws/schema GET read
"""
NEEDS = {
    (method, path): None if scope == "open" else scope
    for path, *needs in map(str.split, _NEEDS.strip().splitlines())
    for method, scope in zip(needs[::2], needs[1::2], strict=True)
}
# A body that each operation takes; without ids, which are put in where the description says that there may be one.
BODIES = {
    ("POST", "/agents"): {"name": "Evil"},
    ("PATCH", "/agents/{agent_id}"): {"name": "Evil", "system_prompt": "Obey.", "toolsets": []},
    ("DELETE", "/agents/{agent_id}/db"): {"confirm": "adas-secret"},
    ("POST", "/agents/{agent_id}/db/execute"): {"sql": "INSERT INTO notes (note) VALUES ('evil')"},
    ("POST", "/agents/{agent_id}/db/migrate"): {"purpose": "evil", "up_sql": "CREATE TABLE evil (a)"},
    ("POST", "/agents/{agent_id}/db/tables"): {"name": "evil", "purpose": "evil", "columns": [{"name": "a"}]},
    ("POST", "/agents/{agent_id}/db/tables/{table}/columns"): {"columns": [{"name": "evil"}]},
    ("POST", "/agents/{agent_id}/db/tables/{table}/rows/upsert"): {
        "rows": [{"note": "evil"}],
        "conflict_columns": ["note"],
    },
    ("POST", "/agents/{agent_id}/db/snapshots/{snapshot}/recover"): {"table": "notes"},
    ("PUT", "/agents/{agent_id}/instructions/{path}"): {"text": "Evil."},
    ("POST", "/agents/{agent_id}/instructions/{path}/accept"): {"digest": "0" * 64},
    ("POST", "/agents/{agent_id}/db/key"): {"confirm": "adas-secret"},
    ("POST", "/agents/{agent_id}/db/import"): {"table": "evil", "text": "note\nevil"},
    ("POST", "/agents/{agent_id}/db/query"): {"sql": "SELECT 1"},
    ("POST", "/agents/{agent_id}/db/tables/{table}/rows"): {"rows": [{"note": "evil"}]},
    ("PATCH", "/agents/{agent_id}/db/tables/{table}/rows"): {"row_ids": [1], "changes": {"note": "evil"}},
    ("POST", "/agents/{agent_id}/db/tables/{table}/rows/delete"): {"row_ids": [1]},
    ("POST", "/agents/{agent_id}/db/tables/{table}/rows/restore"): {"row_ids": [1]},
    ("PUT", "/agents/{agent_id}/db/views/{view}"): {"sql": "SELECT 'evil'"},
    ("PUT", "/agents/{agent_id}/db/views/{view}/pin"): {"pinned": True},
    ("POST", "/agents/{agent_id}/db/views/{view}/run"): {},
    ("PUT", "/agents/{agent_id}/next-run"): {"in_seconds": 3600, "instructions": "Read evil.txt with read_file."},
    ("PUT", "/agents/{agent_id}/pause"): {"preset": "1h", "reason": "evil"},
    ("POST", "/channels"): {"name": "Evil", "url": "json://192.0.2.1/evil", "enabled": False},
    ("PATCH", "/channels/{channel_id}"): {"name": "Evil", "enabled": True},
    ("POST", "/agents/{agent_id}/hooks"): {
        "name": "Evil",
        "scheme": "github",
        "instructions": "Evil.",
        "confirm_session": True,
    },
    ("PATCH", "/hooks/{hook_id}"): {"instructions": "Evil.", "confirm_session": True},
    ("POST", "/hooks/{hook_id}/rotate"): {},
    ("POST", "/webhooks"): {"name": "Evil", "url": "http://192.0.2.1/evil", "events": ["run.failed"], "enabled": False},
    ("PATCH", "/webhooks/{webhook_id}"): {"name": "Evil", "events": ["run.failed"]},
    ("POST", "/download-tickets"): {"path": "/me"},
    ("POST", "/login-links"): {},
    ("POST", "/login/renew"): {"proof": "evil"},
    ("POST", "/models"): {"provider": "ollama", "model": "evil", "name": "evil", "check": False},
    ("PUT", "/models/default"): {"model": "openai-chat:evil"},
    ("POST", "/models/list"): {"provider": "azure", "address": "https://192.0.2.1"},
    ("POST", "/models/test"): {"model": "demo"},
    ("PATCH", "/models/{name}"): {"context_window": 9_000},
    ("PUT", "/pause"): {"preset": "1h", "reason": "evil"},
    ("POST", "/push-subscriptions"): {"name": "Evil", "endpoint": "https://192.0.2.1/evil"} | Browser().keys,
    ("POST", "/runs/{run_id}/approvals/{call_id}"): {"approve": True, "note": "evil"},
    ("POST", "/sessions"): {"title": "Evil"},
    ("PATCH", "/sessions/{session_id}"): {"title": "Evil"},
    ("POST", "/sessions/{session_id}/messages"): {"content": "write evil to evil.txt"},
    ("POST", "/sessions/{session_id}/messages/{message_id}/retry"): {"content": "write evil to evil.txt"},
    ("POST", "/sessions/{session_id}/recall"): {"call_type": "immediate", "additional_context_message": "Evil."},
    ("PATCH", "/sessions/{session_id}/recall"): {"additional_context_message": "Evil."},
    ("POST", "/sessions/{session_id}/schedules"): {"kind": "message", "delay_ms": 3_600_000, "message": "Evil."},
    ("POST", "/tokens"): {"name": "Evil", "scope": "read"},
    ("POST", "/users"): {"name": "Evil"},
    ("PATCH", "/users/{user_id}"): {"name": "Evil"},
    ("POST", "/v1/chat/completions"): {
        "model": "adas-secret",
        "messages": [{"role": "user", "content": "write evil to evil.txt"}],
    },
    ("PATCH", "/wakes/{wake_id}"): {"instructions": "Evil."},
}
FORMS = {("POST", "/login"): {"code": "evil"}}
FILES = {("POST", "/sessions/{session_id}/uploads"): [("files", ("evil.txt", b"evil"))]}
# Names inside one agent's database: all users here have the same.
LOCAL = {
    "path": "AGENTS.md",
    "change_id": "1",
    "name": "evil",  # of a model, which belongs to the server
    "node_id": "ffffffffffffffff",
    "snapshot": "2026-01-01T000000Z-abcdef.sqlite",
    "table": "notes",
    "view": "all_notes",
}
SOCKETS = {"/ws/sessions/{session_id}", "/ws/events"}
PAGE = {"/", "/ui", "/ui/{path}"}  # its files, the same for everyone
# tests/mcp_server goes through its tools; the others answer clients that look for OAuth.
MCP = {"/mcp", "/.well-known/{rest}", "/mcp/.well-known/{rest}", "/authorize", "/register", "/token"}
NOT_DESCRIBED = {"/docs", "/openapi.json"} | PAGE | MCP
LOCAL["path"] = "AGENTS.md"  # of a file that instructs an agent


@dataclass
class Person:
    """Someone with one of everything."""

    name: str
    client: httpx.AsyncClient
    secret: str
    ids: dict[str, str] = field(default_factory=dict)  # by the name of the path parameter that takes it
    path: str = ""  # of the uploaded file

    @property
    def mark(self) -> str:
        """A marker in every text of this user."""
        return f"{self.name.lower()}s-secret"


@cache
def describe() -> dict[str, Any]:
    """The server's OpenAPI document; building it takes as long as a whole test."""
    return application(version("wakeful")).openapi()


class House:
    """A server on a real port, its owner, and two people: Ada, and Bob who would like to know."""

    def __init__(self, node: Wakeful, app: Any, address: str) -> None:
        self.app = app
        self.described = describe()
        self.address = address
        self._node = node
        self._settings = node.settings
        self._clients: list[httpx.AsyncClient] = []
        self.operations = {
            (method.upper(), path): operation
            for path, methods in self.described["paths"].items()
            for method, operation in methods.items()
        }

    def client(self, secret: str, address: str | None = None) -> httpx.AsyncClient:
        client = httpx.AsyncClient(
            base_url=address or self.address, headers={"Authorization": f"Bearer {secret}"}, timeout=30, verify=False
        )
        self._clients.append(client)
        return client

    async def settle(self) -> None:
        self.owner = Person("Owner", self.client(TOKEN), TOKEN)
        [agent] = (await said(self.owner.client.get("/agents")))["agents"]
        await self._furnish(self.owner, agent["id"])
        self.ada, self.bob = [await self._add(name) for name in ("Ada", "Bob")]

    async def leave(self) -> None:
        for client in self._clients:
            await client.aclose()

    async def token(self, person: Person, scope: str) -> httpx.AsyncClient:
        """A client with a smaller token of someone's."""
        made = await said(person.client.post("/tokens", json={"name": person.mark, "scope": scope}))
        return self.client(made["secret"])

    async def _add(self, name: str) -> Person:
        user = await said(self.owner.client.post("/users", json={"name": name}))
        asked = {"name": f"{name.lower()}s-secret", "scope": "admin", "user_id": user["id"]}
        secret = (await said(self.owner.client.post("/tokens", json=asked)))["secret"]
        person = Person(name, self.client(secret), secret)
        tools = {"toolsets": ["recall", "files"], "self_scheduling": True}
        agent = await said(person.client.post("/agents", json={"name": person.mark, **tools}))
        await self._furnish(person, agent["id"])
        return person

    async def _furnish(self, person: Person, agent_id: str) -> None:
        """Give someone a session in which everything has happened."""
        mark, client = person.mark, person.client
        session = await said(client.post("/sessions", json={"agent_id": agent_id, "title": mark}))
        path = f"/sessions/{session['id']}"
        [file] = (await said(client.post(f"{path}/uploads", files=[("files", (f"{mark}.txt", mark.encode()))])))[
            "files"
        ]
        message = {"content": f"in 3 hours check {mark}.txt", "images": [base64.b64encode(PIXEL).decode()]}
        run = (await said(client.post(f"{path}/messages", json=message)))["run_id"]
        await eventually(lambda: _is_over(client, run), 10)
        asked = {"kind": "message", "delay_ms": 7_200_000, "message": mark, "label": mark}
        schedule = await said(client.post(f"{path}/schedules", json=asked))
        booking = {"in_seconds": 7200, "instructions": f"Read {mark}.txt with read_file."}
        await said(client.put(f"/agents/{agent_id}/next-run", json=booking))
        database = f"/agents/{agent_id}/db"
        await said(client.post(f"{database}/import", json={"table": "notes", "text": f"note\n{mark}"}))
        await said(client.put(f"{database}/views/all_notes", json={"sql": "SELECT note FROM notes"}))
        shown = await said(client.get(path))
        person.path = file["path"]
        me = await said(client.get("/me"))
        person.ids = {
            "agent_id": agent_id,
            "allowance_id": await self.allow(me["user"]["id"], agent_id, session["id"]),
            "channel_id": await self.add_channel(mark, me["user"]["id"]),
            **await self.add_hooks(mark, me["user"]["id"], agent_id),
            "call_id": await self.ask(mark, me["user"]["id"], session["id"], run),
            "notification_id": await self.notify(mark, me["user"]["id"]),
            "message_id": shown["messages"][0]["id"],
            "model": agent_id,  # as `agent:ID`
            "image_id": shown["messages"][0]["images"][0]["id"],
            "run_id": run,
            "schedule_id": schedule["schedule"]["id"],
            "session_id": session["id"],
            "subscription_id": await self.add_browser(mark, me["user"]["id"], me["token_id"]),
            "token_id": me["token_id"],
            "user_id": me["user"]["id"],
            "wake_id": shown["recall"]["id"],
        }

    async def ask(self, mark: str, user_id: str, session_id: str, run_id: str) -> str:
        """Ask someone about a call, as the loop does."""
        asked = Approval(
            run_id=run_id,
            call_id=str(uuid.uuid4()),
            user_id=user_id,
            session_id=session_id,
            tool="write_file",
            args={"path": mark},
            status="pending",
            asked_at=self._node.clock.now(),
        )
        await self._node.store.write(lambda tx: tx.approvals.save(asked))
        return asked.call_id

    async def allow(self, user_id: str, agent_id: str, session_id: str) -> str:
        """Allow an agent a tool in a session."""
        made = Allowance(
            id=str(uuid.uuid4()),
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            tool="write_file",
            created_at=self._node.clock.now(),
        )
        await self._node.store.write(lambda tx: tx.approvals.allow(made))
        return made.id

    async def notify(self, mark: str, user_id: str) -> str:
        """Put something into someone's inbox, as the engine does."""
        now = self._node.clock.now()
        notice = Notice(
            id=str(uuid.uuid4()),
            user_id=user_id,
            agent_id=None,
            code="test",
            title=mark,
            body=mark,
            once_key=str(uuid.uuid4()),
            created_at=now,
        )
        await self._node.store.write(lambda tx: tx.notices.add(notice))
        return notice.id

    async def add_channel(self, mark: str, user_id: str) -> str:
        """Give someone a channel, without the process that looks at its address."""
        now = self._node.clock.now()
        channel = Channel(
            id=str(uuid.uuid4()),
            user_id=user_id,
            name=mark,
            url=f"json://192.0.2.1/{mark}",
            shown="json://192.0.2.1",
            enabled=False,
            created_at=now,
            updated_at=now,
        )
        await self._node.store.write(lambda tx: tx.channels.add(channel))
        return channel.id

    async def add_hooks(self, mark: str, user_id: str, agent_id: str) -> dict[str, str]:
        """Give someone a hook and a webhook that are off, with a delivery each."""
        now = self._node.clock.now()
        services = self._node.services
        fields = {"name": mark, "instructions": mark, "enabled": False}
        hook = (await services.hooks.add(user_id, agent_id, "github", fields)).hook
        arrived = ReceivedDelivery(
            id=str(uuid.uuid4()),
            hook_id=hook.id,
            delivery_id=mark,
            sha256=mark,
            event=mark,
            at=now,
            outcome="ping",
            size=1,
        )
        fields = {"name": mark, "events": ("run.failed",), "enabled": False}
        webhook = (await services.webhooks.add(user_id, f"http://192.0.2.1/{mark}", fields)).webhook
        message = Outgoing(
            id=str(uuid.uuid4()),
            kind="webhook",
            target=webhook.id,
            event="run.failed",
            about=mark,
            body="{}",
            status="sent",
            created_at=now,
        )

        async def work(tx: Tx) -> None:
            await tx.hooks.add_received(arrived, mark.encode())
            await tx.outgoing.add([message])

        await self._node.store.write(work)
        return {
            "hook_id": hook.id,
            "hook_delivery_id": arrived.id,
            "webhook_id": webhook.id,
            "webhook_delivery_id": message.id,
        }

    async def add_browser(self, mark: str, user_id: str, token_id: str) -> str:
        """Subscribe someone's browser to push messages."""
        browser = PushSubscription(
            id=str(uuid.uuid4()),
            user_id=user_id,
            token_id=token_id,
            name=mark,
            endpoint=f"https://192.0.2.1/{mark}",
            service="192.0.2.1",
            created_at=self._node.clock.now(),
            **Browser().keys,
        )
        await self._node.store.write(lambda tx: tx.push.add(browser))
        return browser.id

    async def rows(self) -> dict[str, list[str]]:
        """Return every row of every table, except passes, which come and go, and those that a node itself renews."""
        tables = {table: await self._fetch(f"SELECT * FROM {table}") for table in await self._tables()}
        return {
            table: sorted(json.dumps(row, default=str) for row in rows)
            for table, rows in tables.items()
            if table not in ("passes", "store_sequence", "nodes", "directories")
        }

    async def rows_of(self, person: Person) -> dict[str, list[str]]:
        """Every row in which something of this person's stands."""
        marks = (*person.ids.values(), person.mark)
        return {
            table: [row for row in rows if any(mark in row for mark in marks)]
            for table, rows in (await self.rows()).items()
        }

    async def _tables(self) -> list[str]:
        if self._settings.database_url is None:
            text = "SELECT name FROM sqlite_master WHERE type = 'table'"
        else:
            text = "SELECT table_name AS name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            text += " AND table_schema = current_schema()"
        # The heads of changelogs are saved a moment after a write; no route shows or changes them.
        return sorted(row["name"] for row in await self._fetch(text) if row["name"] != "changelog_heads")

    async def _fetch(self, text: str) -> list[dict[str, Any]]:
        if self._settings.database_url is not None:
            connection = await asyncpg.connect(self._settings.database_url.get_secret_value())
            try:
                return [dict(row) for row in await connection.fetch(text)]
            finally:
                await connection.close()
        with_names = database_of(self._settings).connect()
        try:
            with_names.row_trace = _with_names
            return list(with_names.execute(text))
        finally:
            with_names.close()

    async def files(self) -> dict[str, Any]:
        """Return every file of every agent. Of databases, whose journals come and go, it is the changelog."""
        roots = [self._settings.data_dir / "agents", self._settings.data_dir / "caches"]  # the latter on PostgreSQL
        found = [path for root in roots for path in root.rglob("*") if path.is_file()]
        files = [path for path in found if not path.name.startswith("db.sqlite")]
        assert files
        return {str(path): path.read_bytes() for path in files} | {
            person.name: await said(person.client.get(f"/agents/{person.ids['agent_id']}/db/changelog"))
            for person in (self.owner, self.ada, self.bob)
        }


def _with_names(cursor: apsw.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip([column[0] for column in cursor.get_description()], row, strict=True))


async def said(request: Any) -> Any:
    answer = await request
    assert answer.is_success, answer.text
    return answer.json()


async def _is_over(client: httpx.AsyncClient, run_id: str) -> bool:
    run = await said(client.get(f"/runs/{run_id}"))
    assert run["status"] in ("queued", "running", "success"), run
    return run["status"] == "success"


@pytest.fixture(scope="module")
async def house(shared_settings):
    """A house that these tests share: they are refused, or change nothing that another test reads."""
    async with opened_house(shared_settings) as house:
        yield house


@pytest.fixture
async def own_house(backend_settings):
    """A house for one test that changes what the people in it have."""
    async with opened_house(backend_settings) as house:
        yield house


@asynccontextmanager
async def opened_house(stored):
    settings = Settings.model_validate(stored | {"token": SecretStr(TOKEN), "fetch_private_hosts": ["192.0.2.1"]})
    node = build(settings)
    async with node.running():
        await welcome(node)
        gate = build_http(node)
        async with asgi_server(gate) as port:
            house = House(node, gate.app, f"http://127.0.0.1:{port}")
            try:
                await house.settle()
                yield house
            finally:
                await house.leave()


def parameters(operation: dict[str, Any], place: str) -> list[str]:
    return [each["name"] for each in operation.get("parameters", ()) if each["in"] == place]


def id_fields(house: House, operation: dict[str, Any]) -> list[str]:
    """The fields of a body that take an id."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    names = re.findall(r"#/components/schemas/(\w+)", json.dumps(content))
    fields = [key for name in names for key in house.described["components"]["schemas"][name]["properties"]]
    return [key for key in fields if key.endswith("_id")]


async def send(client: httpx.AsyncClient, route: tuple[str, str], ids: dict[str, str], **more: Any) -> httpx.Response:
    """Ask one operation about these ids, with a body that it would take."""
    method, path = route
    path = path.replace("{model}", "agent:{model}")
    body = BODIES.get(route)
    if body is not None:
        body = body | more.pop("fields", {})
    return await client.request(
        method, path.format(**LOCAL, **ids), json=body, data=FORMS.get(route), files=FILES.get(route), **more
    )


def ways(house: House, route: tuple[str, str], theirs: Person, own: Person) -> list[dict[str, str]]:
    """Every way to fill the path of an operation with someone else's ids, of whatever kind, and at times one's own."""
    names = [name for name in parameters(house.operations[route], "path") if name not in LOCAL]
    foreign = set(theirs.ids.values())
    choices = [sorted(foreign) + ([own.ids[name]] if len(names) > 1 else []) for name in names]
    filled = [dict(zip(names, each, strict=True)) for each in itertools.product(*choices)]
    return [ids for ids in filled if foreign & set(ids.values())]


def is_about_people(route: tuple[str, str]) -> bool:
    return route[1].startswith("/users")


def is_for_owners(route: tuple[str, str]) -> bool:
    """Whether owners see everyone in it: people, and whose files fill the disk."""
    return is_about_people(route) or route == ("GET", "/storage")


def is_about_models(route: tuple[str, str]) -> bool:
    """Whether it is about the server's models or nodes, which belong to nobody and only owners may see and change."""
    return route[1].startswith(("/models", "/nodes"))


def same_kind(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()["error"]["code"] if answer.is_error else None


# ── Nothing is left out ─────────────────────────────────────────────────────────────────────────────────────────────


@ON_SQLITE
async def test_every_route_and_socket_is_written_down_here(house):
    assert set(house.operations) == set(NEEDS), "a route came or went: write it down in NEEDS"
    for route, operation in house.operations.items():
        assert set(parameters(operation, "path")) <= {*house.ada.ids, *LOCAL}, (
            f"{route} takes an id that Ada has none of"
        )
        takes_body = "requestBody" in operation
        assert takes_body == (route in BODIES | FORMS | FILES), f"{route} needs a body here"
    routes = list(_all_routes(house.app.routes))
    assert {route.path for route in routes if isinstance(route, APIWebSocketRoute)} == SOCKETS
    described = {path for _, path in house.operations}
    assert {getattr(route, "path_format", route.path) for route in routes} - described - SOCKETS == NOT_DESCRIBED


def _all_routes(routes: Any) -> Any:
    for route in routes:
        inner = getattr(route, "original_router", None) or getattr(route, "router", None)
        if inner is None:
            yield route
        else:
            yield from _all_routes(inner.routes)


async def test_every_route_shows_people_what_is_their_own(house):
    """So that a route that is broken, and refuses everyone, does not count as one that keeps a secret."""
    for route, operation in house.operations.items():
        if route[0] == "GET" and parameters(operation, "path"):
            answer = await send(house.ada.client, route, house.ada.ids)
            if is_about_models(route):
                assert same_kind(answer) == (403, "owners_only"), (route, answer.text)
                answer = await send(house.owner.client, route, house.owner.ids)
                assert answer.status_code == 404, (route, answer.text)  # nobody added this one
                continue
            assert answer.status_code == 200, (route, answer.text)


# ── Two people ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.whole
@WHO
async def test_through_no_route_is_anything_of_another_seen_or_touched(house, who):
    caller: Person = getattr(house, who)
    rows, files = await house.rows_of(house.ada), await house.files()
    tried = 0
    for route in house.operations:
        if who == "owner" and is_about_people(route):
            continue  # an owner manages people, as the last tests say, but not what is theirs
        absent: dict[tuple[str, ...], Any] = {}  # by the names of what is the caller's own
        for ids in ways(house, route, house.ada, caller):
            answer = await send(caller.client, route, ids)
            assert answer.status_code == (403 if is_about_people(route) else 404), (route, ids, answer.text)
            assert house.ada.mark not in answer.text
            # Another user's object looks like a missing one.
            own = tuple(name for name in ids if ids[name] in caller.ids.values())
            if own not in absent:
                nowhere = {name: ids[name] if name in own else str(uuid.uuid4()) for name in ids}
                absent[own] = same_kind(await send(caller.client, route, nowhere))
            assert same_kind(answer) == absent[own], (route, ids)
            tried += 1
    assert tried > 100
    assert await house.rows_of(house.ada) == rows
    assert await house.files() == files


@asynccontextmanager
async def second_node(stored, tmp_path):
    """Start another node on the same PostgreSQL, with a data directory of its own, and return its address."""
    folder = {"data_dir": tmp_path / "second"}
    node = build(Settings.model_validate(stored | folder | {"token": SecretStr(TOKEN)}))
    async with node.running():
        await welcome(node)
        async with asgi_server(build_http(node)) as port:
            yield f"http://127.0.0.1:{port}"


@pytest.mark.whole
@pytest.mark.parametrize("shared_settings", ["postgres"], indirect=True)
async def test_through_a_second_node_is_nothing_of_another_seen_or_touched(house, shared_settings, tmp_path):
    """There too what is someone else's looks like what is not there, wherever its files are."""
    rows, files = await house.rows_of(house.ada), await house.files()
    async with second_node(shared_settings, tmp_path) as address:
        for caller in (house.bob, house.owner):
            client = house.client(caller.secret, address)
            for route, operation in house.operations.items():
                if not parameters(operation, "path") or (caller is house.owner and is_about_people(route)):
                    continue
                names = [name for name in parameters(operation, "path") if name not in LOCAL]
                answer = await send(client, route, {name: house.ada.ids[name] for name in names})
                is_refused = is_about_people(route) or (is_about_models(route) and caller is not house.owner)
                assert answer.status_code == (403 if is_refused else 404), (route, answer.text)
                assert house.ada.mark not in answer.text
                nowhere = await send(client, route, dict.fromkeys(names, str(uuid.uuid4())))
                assert same_kind(nowhere) == same_kind(answer), route
        copies = (tmp_path / "second" / "caches").glob(f"*/{house.ada.ids['agent_id']}/**/*")
        assert [path for path in copies if path.is_file()] == []
    assert await house.rows_of(house.ada) == rows
    assert await house.files() == files


@WHO
async def test_no_list_shows_what_is_anothers(house, who):
    caller: Person = getattr(house, who)
    for route, operation in house.operations.items():
        if route[0] != "GET" or parameters(operation, "path") or (who == "owner" and is_for_owners(route)):
            continue
        filters = [name for name in parameters(operation, "query") if name.endswith("_id")]
        asked = [{}] + [{name: each} for name in filters for each in house.ada.ids.values()]
        for query in asked:
            answer = await send(caller.client, route, {}, params=query)
            marks = {house.ada.mark, *house.ada.ids.values()} - set(query.values())  # an error may quote what was asked
            assert not any(mark in answer.text for mark in marks), (route, query)
            if query:
                assert not any(caller_id in answer.text for caller_id in caller.ids.values()), (route, query)


async def test_no_body_names_what_is_anothers(house):
    rows, files = await house.rows_of(house.ada), await house.files()
    tried = set()
    for route, operation in house.operations.items():
        for name in id_fields(house, operation):
            for each in house.ada.ids.values():
                answer = await send(house.bob.client, route, house.bob.ids, fields={name: each})
                assert answer.status_code in (403, 404), (route, name, answer.text)
                nowhere = await send(house.bob.client, route, house.bob.ids, fields={name: str(uuid.uuid4())})
                assert same_kind(nowhere) == same_kind(answer), (route, name)
                tried.add((route[1], name))
    assert tried == {
        ("/sessions", "agent_id"),
        ("/sessions/{session_id}", "agent_id"),
        ("/tokens", "user_id"),
        ("/login-links", "user_id"),
        ("/agents/{agent_id}/hooks", "session_id"),
        ("/hooks/{hook_id}", "session_id"),
        ("/webhooks", "agent_id"),
        ("/webhooks/{webhook_id}", "agent_id"),
    }
    assert await house.rows_of(house.ada) == rows
    assert await house.files() == files


async def test_an_owner_begins_no_session_with_anothers_agent(house):
    asked = {"agent_id": house.ada.ids["agent_id"]}
    assert (await house.owner.client.post("/sessions", json=asked)).status_code == 404


async def test_a_file_that_another_uploaded_cannot_be_sent(house):
    rows = await house.rows()
    for path in (house.ada.path, house.ada.path.replace("agents/", "agents/./"), "/etc/passwd"):
        body = {"content": "read it", "files": [{"name": "x", "path": path}]}
        answer = await house.bob.client.post(f"/sessions/{house.bob.ids['session_id']}/messages", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "foreign_file")
    assert await house.rows() == rows


async def test_the_page_of_anothers_list_is_no_way_in(house):
    for path in ("/sessions", "/runs", "/wakes"):
        page = (await said(house.ada.client.get(path, params={"limit": 1})))["next"]
        assert page is not None
        answer = await house.bob.client.get(path, params={"page": page})
        assert house.ada.mark not in answer.text
        assert not any(each in answer.text for each in house.ada.ids.values())


# ── Sockets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def socket(house: House, path: str, secret: str):
    headers = {"Authorization": f"Bearer {secret}"}
    async with connect(house.address.replace("http", "ws") + path, additional_headers=headers) as opened:
        yield opened


async def heard(opened: Any, seconds: float = 0.5) -> list[dict[str, Any]]:
    """Everything that comes until nothing comes for a while."""
    frames = []
    while True:
        try:
            frames.append(json.loads(await asyncio.wait_for(opened.recv(), seconds)))
        except TimeoutError:
            return frames


@WHO
async def test_anothers_session_is_an_unknown_one_to_the_socket(house, who):
    rows = await house.rows()
    caller: Person = getattr(house, who)
    for each in (*house.ada.ids.values(), str(uuid.uuid4())):
        for query in ("", "?after=0"):
            async with socket(house, f"/ws/sessions/{each}{query}", caller.secret) as opened:
                with suppress(ConnectionClosed):  # it may be over already
                    await opened.send(json.dumps({"type": "message", "content": "write evil to evil.txt"}))
                with pytest.raises(ConnectionClosed) as closed:
                    await opened.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 4004
                assert house.ada.mark not in closed.value.rcvd.reason
    assert await house.rows() == rows


async def test_the_socket_of_events_tells_only_of_ones_own(own_house):
    async with (
        socket(own_house, "/ws/events", own_house.ada.secret) as adas,
        socket(own_house, "/ws/events", own_house.bob.secret) as bobs,
        socket(own_house, "/ws/events?after=0", own_house.owner.secret) as owners,
    ):
        for opened in (adas, bobs, owners):
            await heard(opened)  # what comes at the beginning
        path = f"/sessions/{own_house.ada.ids['session_id']}"
        await said(own_house.ada.client.patch(path, json={"title": "another adas-secret"}))
        run = (await said(own_house.ada.client.post(f"{path}/messages", json={"content": "list files"})))["run_id"]
        await eventually(lambda: _is_over(own_house.ada.client, run), 10)
        await own_house.notify(own_house.ada.mark, own_house.ada.ids["user_id"])
        await said(own_house.ada.client.delete(path))
        told = {frame["type"] for frame in await heard(adas)}
        assert {"session_update", "run_update", "notification"} <= told
        assert await heard(bobs) == []
        assert await heard(owners) == []


# ── Scopes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@ON_SQLITE
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_token_does_what_its_scope_reaches_and_no_more(house, scope):
    """Tried with a person's own ids where it must fail, and with unknown ones where it may not."""
    client = await house.token(house.ada, scope)
    rows, files = await house.rows(), await house.files()
    is_enough = {}
    for route, needed in NEEDS.items():
        is_enough[route] = needed is None or SCOPES.index(scope) >= SCOPES.index(needed)
        if not is_enough[route]:
            answer = await send(client, route, house.ada.ids)
            assert same_kind(answer) == (403, "scope_too_small"), (route, answer.text)
    assert await house.rows() == rows
    assert await house.files() == files
    unknown = dict.fromkeys(house.ada.ids, str(uuid.uuid4()))
    for route in [route for route in NEEDS if is_enough[route] and route != ("DELETE", "/tokens/{token_id}")]:
        answer = await send(client, route, house.ada.ids if route[0] == "GET" else unknown)
        assert "scope_too_small" not in answer.text, route


@ON_SQLITE
async def test_a_token_that_reads_changes_nothing_at_all(house):
    client = await house.token(house.ada, "read")
    rows, files = await house.rows(), await house.files()
    for route in NEEDS:
        if route[0] != "GET":
            await send(client, route, house.ada.ids)
    assert await house.rows() == rows
    assert await house.files() == files


@ON_SQLITE
@pytest.mark.parametrize("length", ["Content-Length: 73400320", "Transfer-Encoding: chunked"])
async def test_a_token_that_reads_is_refused_before_any_of_a_body_is_read(house, length):
    """The body is never sent, so a server that waited for it would never answer."""
    secret = (await house.token(house.ada, "read")).headers["Authorization"]
    host = house.address.removeprefix("http://")
    writing = [route for route in BODIES | FILES if NEEDS[route] != "read"]
    assert len(writing) > 25
    for method, path in writing:
        kind = "multipart/form-data; boundary=x" if (method, path) in FILES else "application/json"
        filled = path.format(**LOCAL, **house.ada.ids)
        lines = [f"{method} {filled} HTTP/1.1", f"Host: {host}", f"Authorization: {secret}", f"Content-Type: {kind}"]
        head = "\r\n".join([*lines, length, "Connection: close", "", ""]).encode()
        assert await send_raw(house, head) == (403, "scope_too_small"), (method, path)


@ON_SQLITE
async def test_a_token_that_reads_says_nothing_through_a_socket(house):
    client = await house.token(house.ada, "read")
    rows = await house.rows()
    path = f"/ws/sessions/{house.ada.ids['session_id']}"
    message = json.dumps({"type": "message", "content": "write evil to evil.txt"})
    ticket = (await said(client.post("/ws-ticket")))["ticket"]
    secret = client.headers["Authorization"].removeprefix("Bearer ")
    address = house.address.replace("http", "ws")
    async with socket(house, path, secret) as opened, connect(f"{address}{path}?ticket={ticket}") as ticketed:
        for each in (opened, ticketed):
            await each.send(message)
            assert "scope_too_small" in [frame.get("code") for frame in await heard(each)]
    async with socket(house, "/ws/events", secret) as opened:
        await opened.send(message)
        assert "bad_frame" in [frame.get("code") for frame in await heard(opened)]
    assert await house.rows() == rows


@ON_SQLITE
async def test_a_token_revokes_itself_and_with_a_small_scope_no_other(house):
    client = await house.token(house.ada, "schedule")
    refused = await client.delete(f"/tokens/{house.ada.ids['token_id']}")
    assert same_kind(refused) == (403, "scope_too_small")
    own = (await said(client.get("/me")))["token_id"]
    await said(client.delete(f"/tokens/{own}"))
    assert (await client.get("/me")).status_code == 401


# ── Roles ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@ON_SQLITE
async def test_only_an_owner_grants_the_shell(house):
    shell = {"toolsets": ["files", "shell"]}
    ada, agent = house.ada.client, f"/agents/{house.ada.ids['agent_id']}"
    for refused in (await ada.patch(agent, json=shell), await ada.post("/agents", json={"name": "Evil", **shell})):
        assert same_kind(refused) == (403, "shell_not_granted")
    assert "shell" not in (await ada.get("/agents")).text
    granted = await said(house.owner.client.patch(f"/agents/{house.owner.ids['agent_id']}", json=shell))
    assert granted["toolsets"] == ["files", "shell"]


@ON_SQLITE
async def test_only_an_owner_allows_other_models_and_others_are_told_what_is_allowed(house):
    models = {"allowed_models": ["openai:gpt-4o"]}
    ada, agent = house.ada.client, f"/agents/{house.ada.ids['agent_id']}"
    for refused in (await ada.patch(agent, json=models), await ada.post("/agents", json={"name": "Dear", **models})):
        assert same_kind(refused) == (403, "models_not_granted")
        assert "'openai:gpt-4o'. Allowed now, besides its own: none." in refused.json()["error"]["message"]
    assert "gpt-4o" not in (await ada.get("/agents")).text
    granted = await said(house.owner.client.patch(f"/agents/{house.owner.ids['agent_id']}", json=models))
    assert granted["allowed_models"] == ["openai:gpt-4o"]


@pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
async def test_only_an_owner_manages_people(own_house):
    bobs, adas = f"/users/{own_house.bob.ids['user_id']}", f"/users/{own_house.ada.ids['user_id']}"
    rows = await own_house.rows()
    ada = own_house.ada.client
    for method, path, body in (
        ("GET", "/users", None),
        ("POST", "/users", {"name": "Evil", "role": "owner"}),
        ("GET", bobs, None),
        ("PATCH", bobs, {"name": "Evil"}),
        ("DELETE", bobs, None),
        ("DELETE", adas, None),
        ("PATCH", adas, {"role": "owner"}),
        ("POST", "/tokens", {"name": "Evil", "scope": "read", "user_id": own_house.bob.ids["user_id"]}),
        ("POST", "/login-links", {"user_id": own_house.owner.ids["user_id"]}),
    ):
        refused = await ada.request(method, path, json=body)
        assert same_kind(refused) == (403, "owners_only"), (method, path)
    assert await own_house.rows() == rows
    assert (await said(own_house.owner.client.patch(bobs, json={"name": "Bob the second"})))["name"] == "Bob the second"
    await said(own_house.owner.client.delete(bobs))
    assert (await own_house.bob.client.get("/me")).status_code == 401
