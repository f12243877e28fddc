"""Large files of the client go in parts, and on after a broken connection."""

import httpx
import pytest

from valiant import resumed_upload
from valiant.commands import main
from valiant.failures import ConnectionLost, NotFound

ROWS = 20_000


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(resumed_upload, "RESUMED_BYTES", 10_000)
    monkeypatch.setattr(resumed_upload, "PART_BYTES", 30_000)
    path = tmp_path / "table.csv"
    path.write_bytes(b"a\n" + b"".join(b"%d\n" % number for number in range(ROWS)))
    return path


class Breaking(httpx.BaseTransport):
    """Sends requests on, but for those that `breaks` names: they are lost before, or after they were carried out."""

    def __init__(self, transport, breaks):
        self.transport, self.breaks, self.sent = transport, breaks, []

    def handle_request(self, request):
        if request.method != "PATCH":
            return self.transport.handle_request(request)
        self.sent.append(int(request.headers["upload-offset"]))
        how = self.breaks.get(len(self.sent))
        if how == "before":
            raise httpx.ReadError("cut")
        response = self.transport.handle_request(request)
        if how == "behind":
            response.read()
            raise httpx.ReadError("cut")
        return response


@pytest.fixture
def breaking(service, monkeypatch):
    def use(**breaks):
        transport = Breaking(service.driver.http._transport, {int(key[1:]): how for key, how in breaks.items()})
        monkeypatch.setattr(service.driver.http, "_transport", transport)
        return transport

    return use


def test_a_broken_upload_goes_on_and_makes_one_dataset(service, table, breaking):
    transport, offsets = breaking(_2="before", _3="behind"), []
    made = service.upload(table, progress=lambda upload: offsets.append(upload["offset"]))
    assert (made.rows, made.name, made.size_bytes) == (ROWS, "table", table.stat().st_size)
    assert transport.sent == [0, 30_000, 30_000, 60_000, 90_000]
    assert offsets == [0, 30_000, 30_000, 60_000, 90_000, made.size_bytes]


def test_an_upload_that_ended_says_how_it_goes_on(service, table, breaking):
    breaking(**{f"_{number}": "before" for number in range(2, 20)})
    with pytest.raises(ConnectionLost) as lost:
        service.upload(table)
    (note,) = lost.value.__notes__
    upload = note.rpartition("resume='")[2].rstrip("').")
    assert note.startswith("30000 of ")
    breaking()
    service.driver.http._transport = service.driver.http._transport.transport.transport
    with pytest.raises(ValueError, match="this one has"):
        service.upload("app/samples/iris.csv", resume=upload)
    with pytest.raises(NotFound):
        service.upload(table, resume="0198a000-0000-7000-8000-000000000000")
    assert service.upload(table, resume=upload).rows == ROWS


def test_ctrl_c_at_a_terminal_says_how_to_resume(address, table, monkeypatch, capsys):
    part = resumed_upload._part

    def interrupted(path, start):
        if start:
            raise KeyboardInterrupt
        return part(path, start)

    monkeypatch.setattr(resumed_upload, "_part", interrupted)
    assert main(["upload", str(table), "--url", address]) == 130
    shown = capsys.readouterr().err.strip().rpartition("valiant ")[2].strip("`").split()
    assert shown[:3] == ["upload", str(table), "--resume"]
    monkeypatch.setattr(resumed_upload, "_part", part)
    assert main([*shown, "--url", address]) == 0
    assert f"{ROWS} rows" in capsys.readouterr().out
