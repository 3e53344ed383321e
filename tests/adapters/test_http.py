"""The HTTP client: names looked up once, deadlines that hold, answers with an end."""

import asyncio
import socket
import ssl
import threading
from contextlib import suppress

import pytest
from tests.support.receiver import receiving
from tests.support.waiting import PATIENCE

from toolcrib.adapters.http import HttpCaller, caller_to
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, SettingsError, UnavailableError

PUBLIC_ONLY = AddressRules(public_only=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_no_spelling_of_loopback_gets_through(host: str) -> None:
    caller = HttpCaller(PUBLIC_ONLY)
    with receiving() as receiver:
        with pytest.raises(DeniedError):
            caller.post_blocking(f"http://{host}:{receiver.port}/", b"", {}, seconds=PATIENCE)
        assert receiver.received == []
    caller.close()


def test_a_name_is_resolved_once_and_the_checked_address_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: a second look at the name would get the internal address."""
    answers = iter(["127.0.0.2", "127.0.0.1"])

    def resolve(host: object, port: object, *args: object, **kwargs: object) -> list[object]:
        address = next(answers) if host in {"rebind.example", b"rebind.example"} else host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    caller = HttpCaller(AddressRules(("127.0.0.2",), public_only=True))
    with receiving() as receiver, pytest.raises(UnavailableError):
        caller.post_blocking(f"http://rebind.example:{receiver.port}/", b"", {}, seconds=PATIENCE)
    assert receiver.received == []
    caller.close()


def test_a_webhook_reaches_the_address_in_the_settings_and_no_other() -> None:
    with receiving() as receiver, receiving() as other:
        caller = caller_to(receiver.url, "the webhook")
        assert caller.post_blocking(receiver.url, b"", {}, seconds=PATIENCE).ok
        with pytest.raises(DeniedError, match="not among the allowed addresses"):
            caller.post_blocking(other.url, b"", {}, seconds=PATIENCE)
        assert other.received == []
        caller.close()
    with pytest.raises(SettingsError, match="the address of the webhook is wrong"):
        caller_to("ftp://x", "the webhook")


@pytest.fixture
def caller():
    caller = HttpCaller(AddressRules(("127.0.0.1",), public_only=True))
    yield caller
    caller.close()


async def test_a_thread_and_a_coroutine_get_the_same_answer(caller: HttpCaller) -> None:
    with receiving() as receiver:
        receiver.answer = lambda request: (201, {"X-A": "b"}, request.body[::-1])
        one = await caller.post(f"{receiver.url}/p?q=1", b"abc", {"X-Sent": "yes"}, seconds=PATIENCE)
        two = await asyncio.to_thread(caller.post_blocking, receiver.url, b"abc", {}, seconds=PATIENCE)
        assert (one.status, one.headers["x-a"], one.body) == (201, "b", b"cba")
        assert two.body == b"cba"
        assert (receiver.received[0].path, receiver.received[0].headers["x-sent"]) == ("/p?q=1", "yes")


def test_redirects_are_handed_back_not_followed(caller: HttpCaller) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (307, {"Location": f"{receiver.url}/elsewhere"}, b"")
        assert caller.post_blocking(receiver.url, b"", {}, seconds=PATIENCE).status == 307
        assert len(receiver.received) == 1


def test_an_answer_without_end_is_cut(caller: HttpCaller) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (200, {}, b"x" * 100_000)
        with pytest.raises(UnavailableError, match="more than 1,000 bytes"):
            caller.post_blocking(receiver.url, b"", {}, seconds=PATIENCE, max_bytes=1000)


@pytest.mark.parametrize(
    "trickle", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"]
)
def test_the_deadline_holds_while_the_other_side_trickles(caller: HttpCaller, trickle: bytes) -> None:
    """A byte now and then defeats a timeout that counts from the last byte."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        with suppress(OSError):  # the caller has hung up, or never came
            connection, _ = listener.accept()
            with connection:
                connection.sendall(trickle)
                while not stop.wait(0.02):
                    connection.sendall(b"a" if trickle else b"")

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(TimeoutError):
        caller.post_blocking(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"", {}, seconds=1)
    stop.set()
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


async def test_a_cancelled_call_lets_go_of_the_connection(caller: HttpCaller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        task = asyncio.ensure_future(caller.post(url, b"", {}, seconds=60))
        connection, _ = await asyncio.to_thread(listener.accept)
        with connection, connection.makefile("rb") as sent:
            assert await asyncio.to_thread(sent.readline) == b"POST / HTTP/1.1\r\n"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(sent.read), "the rest of the request, and then the end"


def test_nobody_there_is_unavailable(caller: HttpCaller) -> None:
    with receiving() as receiver:
        url = receiver.url
    with pytest.raises(UnavailableError, match="cannot be reached"):
        caller.post_blocking(url, b"", {}, seconds=PATIENCE)


def test_plain_text_on_a_tls_address_is_unavailable(caller: HttpCaller) -> None:
    with receiving() as receiver, pytest.raises(UnavailableError):
        caller.post_blocking(receiver.url.replace("http:", "https:"), b"", {}, seconds=PATIENCE)
    assert ssl.HAS_SNI
