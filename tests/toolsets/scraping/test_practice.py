"""The practice shop: who closes it is told so."""

import http.client
import threading

import pytest

from toolcrib.toolsets.scraping import practice


def test_who_stops_the_shop_has_the_answer_before_it_closes(monkeypatch: pytest.MonkeyPatch):
    answered, was_answered = threading.Event(), []

    class AtOnce(threading.Thread):
        """The process ends as soon as it is asked to."""

        def start(self) -> None:
            was_answered.append(answered.wait(20))
            super().start()

    with practice.Site() as site:
        serving = threading.Thread(target=site.serve_forever, args=(0.1,))
        serving.start()
        connection = http.client.HTTPConnection("127.0.0.1", site.server_address[1], timeout=30)
        connection.request("GET", "/")  # the thread that answers is there already
        assert b"Bookshop" in connection.getresponse().read()
        monkeypatch.setattr(threading, "Thread", AtOnce)
        connection.request("STOP", "/")
        assert b"Closed" in connection.getresponse().read()
        answered.set()
        serving.join()
        connection.close()
    assert was_answered == [True]
