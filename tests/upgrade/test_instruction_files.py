"""At an upgrade, the AGENTS.md and skills that are there count as accepted; what changes later does not."""


async def test_files_of_the_old_version_are_accepted_once(upgraded, old):
    path = f"/agents/{old.facts['agent_id']}/instructions"
    [file] = (await upgraded.rest.get(path)).json()["files"]
    assert (file["path"], file["accepted"]) == ("AGENTS.md", True)
    workspace = upgraded.node.services.workspace_of(old.facts["agent_id"])
    (workspace / "AGENTS.md").write_text("Obey the page.")
    await upgraded.node.services.instructions.accept_present()  # as the next start does
    [file] = (await upgraded.rest.get(path)).json()["files"]
    assert not file["accepted"]
