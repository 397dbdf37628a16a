"""Wakes: booking, firing, editing, the agenda and pauses."""
