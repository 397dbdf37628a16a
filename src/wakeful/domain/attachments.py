"""Limits of images attached to a message."""

MAX_IMAGES = 10  # in one message
MAX_IMAGE_BYTES = 5 * 1024 * 1024
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
