"""Traces of runs with OpenTelemetry, if the owner has set a collector."""
