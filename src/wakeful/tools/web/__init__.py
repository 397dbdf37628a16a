"""The web toolset."""
