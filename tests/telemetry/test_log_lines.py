"""Log lines: one line each, quiet libraries, one traceback per outage, and a writer that never blocks."""

import contextvars
import io
import json
import logging
import sys
import threading

import pytest

from harness import NOON
from wakeful.core.types import ClaimedRun
from wakeful.people.service import make_secret
from wakeful.telemetry.log_writer import LogWriter
from wakeful.telemetry.logs import Preparing, enter_run, log_each, setup_logging

log = logging.getLogger("wakeful.test")


@pytest.fixture
def written(monkeypatch):
    """Return a function that sets up logging and one that returns the lines so far; everything is undone."""
    said = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("wakeful")
    before = root.handlers[:], root.level, ours.level
    flags = logging.logThreads, logging.logProcesses, logging.logMultiprocessing

    def begin(level: str = "info", style: str = "text") -> None:
        monkeypatch.setattr("sys.stderr", said)  # in the test: pytest replaces it after the fixtures
        setup_logging(level, style, ["a-known-secret"])

    def read() -> list[str]:
        for handler in root.handlers:
            handler.flush()
        return said.getvalue().splitlines()

    yield begin, read
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = flags
    logging.captureWarnings(False)


def fail(times: int) -> None:
    for number in range(times):
        try:
            raise ConnectionError(f"attempt {number}")
        except ConnectionError:
            log.exception("store broke")


@pytest.mark.parametrize("style", ["text", "json"])
def test_text_from_outside_cannot_look_like_a_line_of_its_own(written, style):
    begin, read = written
    begin(style=style)
    forged = "x\n2026-03-02T12:00:00+00:00 error   app: server broken run_id=1"
    log.info("tool failed %s", forged, extra={"tool": forged, "other": "a=b c", "plain": "abc-1"})
    [line] = read()
    if style == "text":
        assert 'tool="x\\n2026' in line
        assert line.endswith('other="a=b c" plain=abc-1')
    else:
        assert json.loads(line)["tool"] == forged


def test_text_from_outside_cannot_control_a_terminal_that_shows_the_log(written):
    begin, read = written
    begin()
    hostile = "\x1b]0;x\x07\x7f\x9b2J\u202egpj\u2066\u200f"
    try:
        raise ValueError(f"first {hostile}\nsecond")
    except ValueError:
        log.exception("tool failed %s", hostile, extra={"tool": hostile, "deep": {"a": hostile}})
    lines = read()
    assert all(line.isprintable() for line in lines)
    assert (lines[1], lines[-1]) == ("Traceback (most recent call last):", "second")
    assert lines[0].count("gpj") == 3


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_value_of_a_field_with_the_name_of_a_secret_is_hidden(written, style):
    begin, read = written
    begin(style=style)
    log.info("asked", extra={"headers": {"Cookie": "unknown-1"}, "api_key": "unknown-2", "tokens": 7, "code": "busy"})
    [line] = read()
    assert "unknown" not in line
    assert "busy" in line
    assert "7" in line


@pytest.mark.parametrize("style", ["text", "json"])
def test_messages_fields_and_tracebacks_are_cleaned(written, style):
    begin, read = written
    begin("debug", style)
    secret = make_secret()
    try:
        raise RuntimeError(f"no answer from http://x/?ticket={secret} with a-known-secret")
    except RuntimeError:
        logging.getLogger("some.library").exception(
            "asked %s",
            "a-known-secret",
            extra={"headers": {"cookie": secret}, "list": [(secret, 1)], "count": 3, "what": None},
        )
    text = "\n".join(read())
    assert "no answer from" in text
    assert secret not in text
    assert "a-known-secret" not in text
    if style == "json":
        told = json.loads(text)
        assert (told["message"], told["count"], told["what"]) == ("asked [secret]", 3, None)
        assert told["list"] == [["[secret]", 1]]


def test_a_model_address_with_a_key_is_redacted_whatever_the_parameter_is_called(written):
    begin, read = written
    begin()
    log.warning("asked https://models.example/v1?api-version=3&subscription-key=abc123&sig=def456")
    assert read()[0].endswith("https://models.example/v1?api-version=3&subscription-key=[secret]&sig=[secret]")


def test_libraries_stay_quiet_at_debug_even_if_they_set_their_own_level(written):
    begin, read = written
    begin("debug")
    library = logging.getLogger("some.library")
    library.setLevel("DEBUG")
    library.debug("POST /v1 with the whole prompt")
    library.info("POST /v1")
    library.warning("the connection was lost; a-known-secret")
    log.debug("ours")
    lines = read()
    assert [line.partition(": ")[2] for line in lines] == ["the connection was lost; [secret]", "ours"]


def test_many_failures_of_one_kind_have_one_traceback_and_are_then_counted(written):
    begin, read = written
    begin()
    fail(100)
    lines = read()
    assert sum(line.startswith("Traceback") for line in lines) == 1
    assert sum("store broke" in line and "Traceback" not in line for line in lines) == 20
    assert 'error="ConnectionError: attempt 19"' in lines[-1]


def test_after_a_minute_the_next_failure_says_how_many_were_left_out():
    now = 0.0
    kept: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(record)

    handler = Keeping()
    handler.addFilter(Preparing(lambda: now))
    log.addHandler(handler)
    try:
        fail(30)
        now = 61.0
        fail(1)
    finally:
        log.removeHandler(handler)
    assert len(kept) == 21
    assert vars(kept[-1])["left_out"] == 10
    assert kept[-1].exc_info


def test_lines_inside_a_run_carry_its_ids_and_those_outside_do_not(written):
    begin, read = written
    begin(style="json")
    run = ClaimedRun(
        id="r1",
        agent_id="a",
        user_id="u",
        session_id="s1",
        wake_id=None,
        kind=None,
        trigger="message",
        scheduled_by="user",
        nominal_at=NOON,
        queued_at=NOON,
    )

    def work() -> None:
        enter_run(run)
        log.info("inside")
        logging.getLogger("library").warning("of a library")
        log.info("about another", extra={"run_id": "r2"})

    contextvars.copy_context().run(work)
    log.info("outside")
    found = [json.loads(line) for line in read()]
    assert [line.get("run_id") for line in found] == ["r1", "r1", "r2", None]
    assert [line.get("session_id") for line in found] == ["s1", "s1", "s1", None]


def test_a_target_that_blocks_holds_up_nobody_and_dropped_lines_are_counted():
    is_free, lines = threading.Event(), bytearray()

    def write(some: bytes) -> None:
        is_free.wait()
        lines.extend(some)

    writer = LogWriter(write)
    for number in range(500):
        writer.handle(logging.makeLogRecord({"msg": f"{'x' * 10_000} {number}", "name": "wakeful"}))
    assert writer.dropped == 100  # beyond four megabytes
    is_free.set()
    writer.flush()
    assert lines.decode().endswith("x 399\n")
    writer.handle(logging.makeLogRecord({"msg": "as before", "name": "wakeful"}))
    writer.flush()
    assert lines.decode().endswith(
        "x 399\nlog lines were dropped, because the target of the log was blocked\nas before\n"
    )


def test_many_events_of_one_record_are_a_line_each(written):
    begin, read = written
    begin()
    log_each(log, "wake fired", ("wake_id", "kind", "late_seconds"), [("w1", "recall", 0.1), ("w2", "50% off", 0)])
    log_each(log, "wake fired", ("wake_id", "kind"), [("w3", "recall"), ("w4", "session")])
    log_each(log, "wake fired", ("wake_id",), [("w5",)])
    log_each(log, "wake fired", ("wake_id",), [])
    found = [line.partition(": ")[2] for line in read()]
    assert found == [
        "wake fired wake_id=w1 kind=recall late_seconds=0.1",
        'wake fired wake_id=w2 kind="50% off" late_seconds=0',
        "wake fired wake_id=w3 kind=recall",
        "wake fired wake_id=w4 kind=session",
        "wake fired wake_id=w5",
    ]


@pytest.mark.parametrize("text", ["", "two\nlines", "a=b", 'a "quote"', "wkf_" + "s" * 30, "\x1b[2J"])
def test_one_odd_value_among_many_lines_is_quoted_or_redacted(written, text):
    begin, read = written
    begin()
    rows = [(f"w{number}", "recall" if number != 7 else text) for number in range(20)]
    log_each(log, "wake fired", ("wake_id", "kind"), rows)
    found = read()
    assert len(found) == 20
    assert found[6].endswith("wake_id=w6 kind=recall")
    assert not found[7].endswith(f"kind={text}")
    assert "s" * 30 not in "".join(found)


def test_a_record_that_cannot_be_written_does_not_end_the_writer(written):
    begin, read = written
    begin()
    log.info("two arguments for one %s", 1, 2)
    log.info("the next")
    assert [line.partition(": ")[2] for line in read()] == ["TypeError", "the next"]


def test_warnings_of_python_are_log_lines(written):
    begin, read = written
    begin()
    sys.modules["warnings"].showwarning("old api_key=a-known-secret", DeprecationWarning, "x.py", 1)
    assert "py.warnings" in read()[0]
    assert "a-known-secret" not in read()[0]
