"""A copy of the data of 0.2 on each backend, and today's server on it."""

import pytest

from conftest import BACKENDS
from upgrade.old_data import copy_old_data, running_old_server


@pytest.fixture(params=BACKENDS)
def old(request, tmp_path):
    """The copy, before any newer code has touched it."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return copy_old_data(request.param, tmp_path, url)


@pytest.fixture
async def upgraded(old):
    """Today's server, started on the copy."""
    async with running_old_server(old.settings) as server:
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
        yield server
