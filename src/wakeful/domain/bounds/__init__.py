"""What bounds an agent: hours, days, caps, horizons, pauses."""
