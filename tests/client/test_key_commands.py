"""`valiant keys`: without a key in the database of the service, with one by the service."""

import json

import pytest

from app.cli import main


@pytest.fixture(scope="module")
def guarded(api_address, settings):
    """Environment of commands for an API that wants keys, and of whoever has its database."""
    return {"VALIANT_URL": api_address(auth="keys"), "VALIANT_DATABASE_URL": settings.database_url.get_secret_value()}


@pytest.fixture
def valiant(capsys, monkeypatch, tmp_path, guarded):
    def run(*arguments, key=None):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name, value in guarded.items():
            monkeypatch.setenv(name, value)
        if key is not None:
            monkeypatch.setenv("VALIANT_KEY", key)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def test_keys_from_the_first_to_the_last(valiant):
    code, printed, errors = valiant("keys", "create", "--role", "admin", "--name", "me")
    assert code == 0
    assert "not shown again" in errors
    admin = printed.strip()
    assert admin.startswith("vlt_")

    code, printed, _ = valiant("keys", "create", "--role", "caller", "--models", "fraud-*", "--json", key=admin)
    made = json.loads(printed)
    assert (code, made["models"], made["project"]) == (0, ["fraud-*"], "default")
    code, rotated, _ = valiant("keys", "rotate", made["id"], "--grace", "60")
    assert code == 0
    assert rotated.startswith("vlt_")
    assert valiant("keys", "revoke", made["id"]) == (0, "", "")
    code, table, _ = valiant("keys")
    assert code == 0
    assert "revoked" in table
    assert valiant("models", key=rotated.strip())[0] == 4


def test_the_embedded_database_gets_a_key_while_it_runs(valiant, guarded, stack, monkeypatch):
    """Even where a key is configured: that of another service, perhaps."""
    monkeypatch.delitem(guarded, "VALIANT_DATABASE_URL")
    for arguments in (("--data", str(stack.folder.root)), ()):
        monkeypatch.setenv("VALIANT_DATA", str(stack.folder.root))
        code, printed, errors = valiant(
            "keys", "create", "--role", "admin", *arguments, key="other" if arguments else ""
        )
        assert code == 0, errors
        assert valiant("keys", key=printed.strip())[0] == 0


def test_wrong_options_are_named(valiant):
    assert valiant("keys", "create", "--role", "owner")[0] == 2
    code, _, errors = valiant("keys", "create", "--role", "caller", "--days", "1000")
    assert (code, "--expires_in_days" in errors) == (1, True)
