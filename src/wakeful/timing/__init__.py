"""When a wake runs: pure rules for times, recurrence, bounds, bookings and firing."""
