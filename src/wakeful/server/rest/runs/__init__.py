"""Routes for runs and approvals."""
