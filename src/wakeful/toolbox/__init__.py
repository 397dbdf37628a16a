"""The list of tools, their arguments and calls; and the tool `fetch_url`."""
