"""The server listens before it imports what takes seconds."""

import subprocess
import sys

HEAVY = ("fastapi", "wakeful.store.store", "wakeful.people.service", "wakeful.app.building")


def test_listening_imports_neither_fastapi_nor_the_store():
    code = f"import sys, wakeful.app.listening; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
