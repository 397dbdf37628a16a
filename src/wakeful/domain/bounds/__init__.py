"""Limits of an agent's bookings: hours, days, caps, horizons, pauses."""
