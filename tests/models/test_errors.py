import httpx2
import pytest
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    UnexpectedModelBehavior,
    UserError,
)

from wakeful.models.errors import ModelBusy, ModelCutOff, ModelFailed, ProviderMissing, translate
from wakeful.models.names import NoSuchModel

BODY = {"error": {"message": "Slow down."}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(ModelHTTPError(429, "m", BODY), ModelBusy, id="rate limit"),
        pytest.param(ModelHTTPError(503, "m", BODY), ModelBusy, id="5xx"),
        pytest.param(ModelHTTPError(400, "m", BODY), ModelFailed, id="bad request"),
        pytest.param(ModelHTTPError(503, "m", BODY, in_stream=True), ModelCutOff, id="inside a stream"),
        pytest.param(
            ModelHTTPError.for_category(ModelQuotaExceededError, status_code=429, model_name="m", body=BODY),
            ModelFailed,
            id="spent",
        ),
        pytest.param(ModelConnectionError("m", "Slow down."), ModelBusy, id="connection"),
        pytest.param(ModelAPIError("m", "Slow down."), ModelFailed, id="something else"),
        pytest.param(UnexpectedModelBehavior("Slow down."), ModelFailed, id="nonsense"),
        pytest.param(UserError("Slow down."), ModelFailed, id="wrong use"),
        pytest.param(httpx2.ReadError("Slow down."), ModelBusy, id="a bare transport error"),
        pytest.param(ImportError("Slow down."), ProviderMissing, id="no SDK"),
    ],
)
def test_a_stock_models_exception_gets_the_kind_that_says_what_to_do(error, kind):
    meaning = translate(error, "openai:m")
    assert type(meaning) is kind
    assert "'openai:m'" in meaning.message
    assert "Slow down." in meaning.message


def test_the_wait_that_a_provider_asked_for_is_kept():
    error = ModelHTTPError.for_category(
        ModelRateLimitError, status_code=429, model_name="m", headers={"Retry-After": "9"}
    )
    meaning = translate(error, "m")
    assert isinstance(meaning, ModelBusy)
    assert (meaning.retry_after, meaning.status) == (9.0, 429)


def test_what_is_not_about_the_model_is_left_alone():
    assert translate(ZeroDivisionError(), "m") is None


def test_our_own_errors_stay_as_they_are():
    error = NoSuchModel("m", "no.")
    assert translate(error, "m") is error


def test_what_a_provider_says_is_passed_on_without_the_secret():
    meaning = translate(ModelHTTPError(401, "m", {"message": "Bad key sk-1"}), "m", hide=["sk-1"])
    assert isinstance(meaning, ModelFailed)
    assert "Bad key [hidden]" in meaning.message
