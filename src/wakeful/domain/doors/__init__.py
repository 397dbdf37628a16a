"""Requests for recalls, schedules and next runs: validation, and the wake they become."""
