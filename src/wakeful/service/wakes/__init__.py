"""Booking, changing and firing wakes."""
