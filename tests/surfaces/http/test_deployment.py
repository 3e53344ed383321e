"""The files that deploy the service say nothing that the service does not know."""

import re
import tomllib
from pathlib import Path

from toolcrib.bootstrap import open_system
from toolcrib.settings import describe, load_settings
from toolcrib.surfaces.http.gate import Access

ROOT = Path(__file__).parents[3]
KNOWN = {described.variable for described in describe()} | {"TOOLCRIB_CONFIG"}


def test_every_variable_exists() -> None:
    for name in (
        "Dockerfile",
        "compose.yaml",
        "deploy/toolcrib.service",
        "docs/guides/production.md",
        "docs/guides/service.md",
    ):
        used = set(re.findall(r"TOOLCRIB_[A-Z0-9_]+", (ROOT / name).read_text()))
        assert used <= KNOWN, name


def test_the_guides_settings_are_settings(tmp_path: Path) -> None:
    text = (ROOT / "docs/guides/production.md").read_text()
    found = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    tomllib.loads(found.group(1))
    (tmp_path / "toolcrib.toml").write_text(found.group(1))
    settings = load_settings({"HOME": str(tmp_path)}, tmp_path)
    assert settings.policy == "webhook"
    assert settings.jwt_role_claim == "realm_access.roles"
    assert open_system(settings).bearer is not None

    class NoTokens:
        def all(self) -> list[object]:
            return []

    access = Access.of(settings, NoTokens())  # type: ignore[arg-type]
    assert not access.open_to_local
    assert access.hosts == ("tools.example.org",)


def test_the_image_installs_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in ("Dockerfile", "deploy/toolcrib.service"):
        named = re.search(r"\[([a-z0-9,]+)\]'", (ROOT / name).read_text())
        assert named is not None
        assert set(named.group(1).split(",")) <= set(extras)
