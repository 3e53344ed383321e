"""A publisher who owns nothing but a token uploads a bundle to the real service, to own the machine."""

import uuid

from tests.attacks.conftest import Attacked
from tests.support.bundles import FOREVER
from tests.support.processes import running
from tests.support.waiting import wait_until

from toolcrib.adapters.runners.walls import NEEDED


def test_a_bundle_finds_neither_tokens_nor_audit_nor_code_nor_keys(attacked: Attacked) -> None:
    attacked.service.environment["TOOLCRIB_S3_SECRET_ACCESS_KEY"] = "very-secret"
    attacked.service.start()
    attacked.upload("honest", "return 'honest'")
    attacked.upload(
        "thief",
        "import socket\nfound, texts = [], []\n"
        "for folder, folders, names in os.walk(input_data['folder']):\n    found += names\n"
        "for pid in os.listdir('/proc') if os.path.isdir('/proc') else ():\n"
        "    try:\n        texts.append(open(f'/proc/{pid}/environ').read())\n"
        "    except OSError:\n        pass\n"
        "try:\n    socket.create_connection(('127.0.0.1', input_data['port']), 5)\n    found.append('service')\n"
        "except OSError:\n    pass\n"
        "for pid in range(3, 5000):\n"
        "    try:\n        os.kill(pid, 9)\n        found.append(pid)\n    except OSError:\n        pass\n"
        "return [found, 'very-secret' in ''.join(texts)]",
    )
    runner = attacked.as_role("runner")
    arguments = {"folder": str(attacked.service.folder), "port": attacked.service.port}
    stolen = runner.post("/tools/thief/run", json={"arguments": arguments}).json()
    assert stolen["success"], stolen
    assert (stolen["data"], stolen["metadata"]["walls"][:5]) == ([[], False], list(NEEDED))
    assert runner.post("/tools/honest/run", json={"arguments": {}}).json()["data"] == "honest"
    assert "bundles run behind these walls: user, mount, process, network, ipc" in attacked.service.log_text()


def test_a_bundle_ends_with_a_service_that_is_killed(attacked: Attacked) -> None:
    attacked.service.start()
    mark = uuid.uuid4().hex
    attacked.upload("endless", FOREVER.format(mark=mark) + "time.sleep(600)")
    client = attacked.as_role("runner")
    with attacked.beside(lambda: client.post("/tools/endless/run", json={"arguments": {}})):
        wait_until(lambda: running(mark))
        attacked.service.kill()
        wait_until(lambda: not running(mark))
