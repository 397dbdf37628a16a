"""Routes for wakes, and for the doors they are booked through."""
