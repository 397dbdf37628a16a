"""Wakeful for programs that speak MCP: the bridge on stdin and stdout, its tokens, and blocks to paste."""
