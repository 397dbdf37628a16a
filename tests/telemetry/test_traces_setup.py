"""The extra for traces: what a server and `wakeful doctor` say when it, or the collector, is missing."""

import sys

import pytest

from otlp_server import OtlpServer
from wakeful.app.building import OtelMissing, build
from wakeful.config.settings import Settings
from wakeful.doctor.checks import check_traces


def traced(settings, endpoint):
    return Settings.model_validate(settings | {"otel_endpoint": endpoint})


@pytest.fixture
def _without_otel(monkeypatch):
    for name in list(sys.modules):  # another test may have imported them
        if name.startswith(("opentelemetry.sdk.", "wakeful.telemetry.otel")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # as Python has it for a package that is not there


@pytest.mark.usefixtures("_without_otel")
def test_a_server_without_the_extra_says_how_to_install_it(settings):
    with pytest.raises(OtelMissing) as refused:
        build(traced(settings, "http://localhost:4318"))
    assert "'http://localhost:4318'" in refused.value.message
    assert "pip install 'wakeful[otel]'" in refused.value.message


@pytest.mark.usefixtures("_without_otel")
def test_a_server_without_the_extra_starts_if_no_collector_is_set(settings):
    build(Settings.model_validate(settings))


@pytest.mark.usefixtures("_without_otel")
def test_the_doctor_names_the_missing_extra(settings):
    [check] = check_traces(traced(settings, "http://localhost:4318"), is_quick=False)
    assert (check.status, "pip install" in check.advice) == ("wrong", True)


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [(200, "ok", "takes them"), (404, "wrong", "refused"), (301, "wrong", "redirect")],
)
def test_the_doctor_asks_the_collector(settings, status, verdict, words):
    with OtlpServer(status) as collector:
        [check] = check_traces(traced(settings, collector.origin), is_quick=False)
        assert check.status == verdict
        assert words in check.found
        assert len(collector.bodies) == 1
        [check] = check_traces(traced(settings, collector.origin), is_quick=True)
        assert (check.status, len(collector.bodies)) == ("skipped", 1)


def test_the_doctor_finds_no_collector(settings):
    with OtlpServer() as gone:
        endpoint = gone.origin
    [check] = check_traces(traced(settings, endpoint), is_quick=False)
    assert (check.status, "unreachable" in check.found) == ("wrong", True)
    assert list(check_traces(Settings.model_validate(settings), is_quick=False)) == []
