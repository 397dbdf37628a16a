"""Labels have a bounded number of values, and a full set of series is written quickly."""

import time
from datetime import UTC, datetime

from wakeful.config.settings import Settings
from wakeful.core.clock import ManualClock
from wakeful.core.identity import Identity
from wakeful.core.records import NodeIdentity
from wakeful.core.types import User
from wakeful.datadir.device_key import database_of
from wakeful.operations.metrics import Metrics
from wakeful.store.store import Store

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
OWNER = Identity(user=User(id="u", name="Ada", role="owner", created_at=NOW), scope="read", token_id="t")


async def test_names_beyond_the_bound_are_other_and_all_of_them_fit_into_50_ms(tmp_path):
    store = Store(database_of(Settings(data_dir=tmp_path, config_dir=tmp_path, store_encryption=False)))
    metrics = Metrics(store, ManualClock(NOW), NodeIdentity(owner="o", name="here", version="1.0"))
    for number in range(1_000):
        metrics.note_model_call(f"model-{number}", 0.5, 100, 10, 5)
        metrics.note_model_error(f"model-{number}", f"code-{number}")
        metrics.note_tool_call(f"tool-{number}", is_known=True, is_success=True)
        metrics.note_tool_call(f"made-up-{number}", is_known=False, is_success=False)
    await store.open(NOW)
    try:
        text = (await metrics.text(OWNER, is_ready=True, is_draining=False)).decode()
        used = time.thread_time()
        await metrics.text(OWNER, is_ready=True, is_draining=False)
        used = time.thread_time() - used
    finally:
        await metrics.aclose()
        await store.close()
    assert 'wakeful_model_tokens_total{direction="input",model="model-49"}' in text
    assert "model-50" not in text
    assert 'wakeful_model_tokens_total{direction="input",model="other"} 95000.0' in text
    assert 'wakeful_tool_calls_total{outcome="failed",tool="unknown"} 1000.0' in text
    assert "made-up" not in text
    assert len(text.splitlines()) < 3_000
    assert used < 0.05
