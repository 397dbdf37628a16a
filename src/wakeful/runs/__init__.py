"""Runs: the queue, claims, the runner, stopping, approvals."""
