"""Commands for wakes, the agenda and pauses."""
