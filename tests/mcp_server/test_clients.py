"""`wakeful mcp config`: what a server answers cannot add anything to the block that is pasted."""

import shlex

import pytest
import yaml

from wakeful.mcp_server.commands import CLIENTS, Access


@pytest.mark.parametrize("token", ["wkf_1-a_b", "x'; touch /tmp/pwned; '", "x\n      cmd: sh\n  evil: {cmd: sh}"])
def test_a_token_is_one_value_of_the_command_and_of_the_file(token):
    access = Access(url="https://wakeful.example:8420/mcp", token=token, command=("wakeful", "mcp"), env={})
    assert shlex.split(CLIENTS["claude-code"].write(access).replace("\\\n", "", 1))[-3:] == [
        "https://wakeful.example:8420/mcp",
        "--header",
        f"Authorization: Bearer {token}",
    ]
    extensions = yaml.safe_load(CLIENTS["goose"].write(access))["extensions"]
    assert list(extensions) == ["wakeful"]
    assert extensions["wakeful"]["headers"] == {"Authorization": f"Bearer {token}"}
