"""News: no write of the store can go unannounced, and NOTIFY's texts mean the same on every node."""

import ast
import inspect
import re
import sys
import textwrap
from datetime import UTC, datetime

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core import events, ids
from wakeful.store import rows
from wakeful.store.drivers.sqlite_thread import SqliteStatements
from wakeful.store.news import decode, encode
from wakeful.store.store import Tx

# Writing methods that leave no news, by the reason.
QUIET = {
    "accounts, tokens and passes are read at each use, and no frame shows them": {
        "AccountRows.add_first_owner", "AccountRows.add_pass", "AccountRows.add_token", "AccountRows.add_user",
        "AccountRows.delete_user", "AccountRows.drop_other_owner_tokens", "AccountRows.end_logins",
        "AccountRows.delete_ended", "AccountRows.put_owner_token", "AccountRows.revoke_token",
        "AccountRows.use_pass", "AgentRows.add_user",
        "AgentRows.delete_user",
    },
    "channels and browsers are read for each notice, and no frame shows them": {
        "ChannelRows.add", "ChannelRows.delete", "ChannelRows.save", "PushRows.add", "PushRows.add_key",
        "PushRows.delete", "PushRows.drop_ended", "PushRows.drop_key", "PushRows.delete_endpoint", "PushRows.save",
    },
    "hooks and webhooks are read at each use, and no frame shows them": {
        "HookRows.add", "HookRows.add_received", "HookRows.delete", "HookRows.delete_received",
        "HookRows.delete_of_agent", "HookRows.delete_old", "WakeRows.save_zone_rules", "AccountRows.renew_login",
        "HookRows.record_received", "HookRows.record_refusal", "HookRows.save", "WebhookRows.add",
        "WebhookRows.delete", "WebhookRows.delete_old_secrets",
        "WebhookRows.queue", "WebhookRows.save",
    },
    "kept for the host itself": {
        "AgentRows.forget_changelog_head", "AgentRows.save_changelog_head", "BackupRows.fail", "BackupRows.finish",
        "BackupRows.renew", "BackupRows.claim", "BookingKeys.delete_expired", "BookingKeys.claim",
        "ClientSessionRows.delete_old",
        "ClientSessionRows.save",
        "DirectoryRows.delete_dead_nodes", "DirectoryRows.delete_node", "DirectoryRows.save", "DirectoryRows.see_node",
        "HomeRows.free", "HomeRows.hold",
        "InstructionFileRows.accept", "InstructionFileRows.mark_compared", "McpTools.drop_name",
        "McpTools.save", "McpTools.claim_upgrade", "NodeRows.describe",
        "NodeRows.set_token", "OutgoingRows.cancel", "OutgoingRows.claim", "OutgoingRows.delete",
        "OutgoingRows.delete_of_target", "OutgoingRows.delete_old", "OutgoingRows.renew", "PingRows.take",
        "Presence.end", "Presence.end_all_of_nodes", "Presence.delete_expired", "Presence.save",
        "RunRows.delete_stop_request",
        "RunRows.free_stop_requests", "RunRows.record_calls", "SearchRows.add_earlier", "UnconfinedMcpServers.add",
        "UnconfinedMcpServers.drop", "UnconfinedMcpServers.claim_upgrade", "WakeRows.mark_seen",
    },
    "saved beside a change of its wake, run or session, which is announced": {
        "Notices.record", "Notices.resolve", "RunRows.fold", "RunRows.mark", "SearchRows.add_message",
        "SearchRows.add_titles", "SearchRows.replace_title", "SessionRows.add_image", "SessionRows.add_upload",
        "SessionRows.preload", "UsageRows.save",
    },
    "a part of a change of a home, which is announced": {
        "HomeRows.add_contents", "HomeRows.add_pages", "HomeRows.cut_pages", "HomeRows.save", "HomeRows.save_files",
    },
    "no client shows whether another has read a notice": {"Notices.mark_read"},
    "clears away what is old": {
        "RunRows.roll_up_skipped", "SessionRows.delete_old_events", "StorageRows.delete_runs",
    },
}  # fmt: skip
IS_WRITING = re.compile(r"\b(INSERT INTO|(?<!FOR )(?<!FOR NO KEY )UPDATE|DELETE FROM)\b")


def row_classes() -> list[type]:
    tx = Tx(SqliteStatements(apsw.Connection(":memory:")))
    return [type(getattr(tx, name)) for name in vars(tx) if not name.startswith("_") and name != "say"]


def is_writing(query: str) -> bool:
    found = [each[query].sql for each in (rows.for_sqlite(), rows.for_postgres()) if query in each]
    return any(IS_WRITING.search(sql) for sql in found)


class Method:
    """Return the source of a method, with the methods and functions of its module that it calls."""

    def __init__(self, kind: type, name: str) -> None:
        self._module = sys.modules[kind.__module__]
        self._kind = kind
        self._seen: set[str] = set()
        self.writes: set[str] = set()
        self.leaves_news = False
        self._look_at(getattr(kind, name))

    def _look_at(self, function: object) -> None:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            if isinstance(node, ast.Constant) and node.value in rows.for_postgres() and is_writing(node.value):
                self.writes.add(node.value)
            elif isinstance(node, ast.Attribute):
                self.leaves_news |= node.attr == "news"
                self._follow(getattr(self._kind, node.attr, None), node.attr)
            elif isinstance(node, ast.Name):
                self._follow(getattr(self._module, node.id, None), node.id)

    def _follow(self, called: object, name: str) -> None:
        if inspect.isfunction(called) and name not in self._seen and called.__module__.startswith("wakeful.store"):
            self._seen.add(name)
            self._look_at(called)


def writing_methods() -> dict[str, Method]:
    found = {
        f"{kind.__name__}.{name}": Method(kind, name)
        for kind in row_classes()
        for name, _ in inspect.getmembers(kind, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    return {name: method for name, method in found.items() if method.writes}


def test_every_writing_method_leaves_news_or_is_known_to_need_none():
    silent = {name for name, method in writing_methods().items() if not method.leaves_news}
    assert silent == set().union(*QUIET.values())


def test_every_query_that_writes_belongs_to_a_method_that_was_looked_at():
    """SQL outside of these classes would not be announced."""
    seen = set().union(*(method.writes for method in writing_methods().values()))
    elsewhere = {
        "renew_leases",  # of the heartbeat
    }
    assert {name for name in rows.for_postgres() if is_writing(name)} - seen <= elsewhere


# ── The texts of NOTIFY ─────────────────────────────────────────────────────────────────────────────────────────────

IDS = st.uuids().map(str)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
PIECES = st.one_of(
    st.builds(
        events.WakeChanged,
        IDS,
        st.sampled_from(["scheduled", "deferred", "fired", "rescheduled", "skipped", "cancelled", "failed"]),
        st.sampled_from(["pending", "queued", "running", "fired", "failed", "cancelled", "skipped", "superseded"]),
        TIMES,
    ),
    st.builds(events.RunChanged, IDS, st.sampled_from(["queued", "running"]), st.sampled_from([None, "no_slot"])),
    st.builds(events.SessionChanged, IDS),
    st.builds(events.HomeChanged, IDS, IDS, st.sampled_from([None, "tasks"]), st.sampled_from([None, 7]), IDS),
    st.builds(events.HomeErased, IDS),
    st.builds(events.SessionGone, IDS, IDS),
    st.builds(events.AgentChanged, IDS, IDS),
    st.builds(events.NodeChanged, IDS),
    st.builds(events.NoticeAdded, IDS),
    st.builds(events.OutgoingQueued, st.sampled_from(["channel", "ping"])),
    st.builds(events.ApprovalChanged, IDS),
    st.sampled_from([events.WakeDueSooner(), events.RunQueued(), events.StopAsked(), events.LookAgain()]),
)


@given(st.lists(PIECES, max_size=20))
def test_news_is_read_as_it_was_written_and_that_of_one_type_keeps_its_order(written):
    read = [each for text in encode(written) for each in decode(text)]
    for kind in {type(each) for each in written}:
        meant = list(dict.fromkeys(each for each in written if type(each) is kind))
        assert [each for each in read if type(each) is kind] == meant
    assert len(read) == len(set(written))


def test_much_news_of_one_type_takes_few_texts_and_none_is_too_long_for_the_server():
    at = datetime(2026, 3, 2, tzinfo=UTC)
    changes = [events.WakeChanged(ids.new_id(), "rescheduled", "superseded", at) for _ in range(500)]
    texts = encode(changes)
    assert len(texts) < 8
    assert all(len(text) < 7_900 for text in texts)
    assert [each for text in texts for each in decode(text)] == changes


def test_another_node_learns_that_frames_were_saved_and_reads_them_itself():
    [text] = encode([events.FramesSaved("s", 7, ('{"type":"stream_start"}',))])
    assert decode(text) == [events.FramesSaved("s")]


@pytest.mark.parametrize("reason", ["it's", "two words", "'); DROP TABLE wakes; --", "é", ""])
def test_a_text_that_could_end_the_sql_around_it_is_left_out(reason):
    [text] = encode([events.RunChanged("r", "failed", reason)])
    assert decode(text) == [events.RunChanged("r", "failed", None)]


def test_a_word_of_a_newer_version_is_no_news():
    assert decode("novelty 1 2 3") == []


@pytest.mark.parametrize("text", ["run r queued", "wake w fired fired soon", "home a u tasks many n", "session_gone s"])
def test_a_known_word_with_the_fields_of_another_version_is_no_news(text):
    assert decode(text) == []
