import pytest

from wakeful.app import first_start
from wakeful.app.first_start import TokenFileUnusable, load_token


def test_of_two_starts_at_once_the_second_takes_the_token_of_the_first(tmp_path):
    path = tmp_path / "config" / "token"
    # Both have found no file; only one may give it its content.
    assert [first_start.keep_token(path, secret) for secret in ("first", "second")] == ["first", "first"]
    assert load_token(path.parent) == "first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["token"]


def test_a_directory_that_cannot_be_made_is_named_with_what_to_do(tmp_path):
    (tmp_path / "config").write_text("a file stands where the directory should")
    with pytest.raises(TokenFileUnusable, match="WAKEFUL_CONFIG_DIR"):
        first_start.keep_token(tmp_path / "config" / "token", "secret")
