"""Delivery outside of the inbox: channels, push messages to browsers, pings."""
