"""The file itself: opening, quota, reclaiming space, upgrades."""
