"""Rules of wakes: when they fire, what becomes of them, and how that is explained."""
