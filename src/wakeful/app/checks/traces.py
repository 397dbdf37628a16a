"""Checks of the collector that traces are sent to, if there is one."""

from collections.abc import Iterator

from wakeful.app.build.tracing import INSTALL, is_otel_installed, make_exporter
from wakeful.app.checks.check import Check, skipped, wrong
from wakeful.config import Settings

_ADVICE = {
    "unreachable": "See that the collector runs and takes OTLP over HTTP at this address, usually on port 4318.",
    "certificate": "Its certificate is not valid for this host, or this machine does not trust it.",
    "refused": "It does not take traces at this address: see its documentation for otel_endpoint and otel_headers.",
    "redirect": "Redirects are not followed: set otel_endpoint to the address that it redirects to.",
}


def check_traces(settings: Settings, *, is_quick: bool) -> Iterator[Check]:
    """Check that the extra is installed and, unless it is quick, that the collector takes a request without spans."""
    endpoint = settings.otel_endpoint
    if endpoint is None:
        return
    if not is_otel_installed():
        yield wrong("traces", f"otel_endpoint is {endpoint}, but the OpenTelemetry SDK is not installed", INSTALL)
    elif is_quick:
        yield skipped("traces", f"{endpoint}, not asked (--quick)")
    else:
        outcome = make_exporter(settings).probe()
        if outcome == "sent":
            yield Check(name="traces", found=f"{endpoint} takes them")
        else:
            yield wrong("traces", f"{endpoint} does not take them: {outcome}", _ADVICE[outcome])
