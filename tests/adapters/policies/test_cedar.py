"""Rules in Cedar: what they see of a request, when they are read again, and how a mistake in them is told."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from toolcrib import ToolSpec
from toolcrib.adapters.policies.cedar import CedarPolicy
from toolcrib.core.errors import SettingsError
from toolcrib.core.limits import Action
from toolcrib.ports import Decision, Policy, PolicyRequest

RULES = """\
// Everybody may read.
permit(principal, action == Action::"read", resource);

@id("publishers-publish")
permit(principal in Role::"publisher", action in [Action::"create", Action::"update"], resource);

@id("safe-tools-run")
permit(principal, action == Action::"run", resource)
when { resource.safety_level == "safe" };

@id("quick-tools-run")
permit(principal, action == Action::"run", resource)
when { resource has timeout_seconds && resource.timeout_seconds.lessThan(decimal("2.0")) };

@id("hands-off-payments")
forbid(principal, action, resource)
when { resource has tags && resource.tags.contains("payments; really") }
unless { principal == User::"treasurer" };
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cedar"
    path.write_text(RULES)
    return path


def ask(policy: Policy, principal: str, action: Action, **fields: Any) -> Decision:
    spec = ToolSpec(**{"name": "hammer", "description": "Drives nails.", **fields})
    document = {name: value for name, value in spec.to_dict().items() if name != "credentials"}
    return policy.decide(PolicyRequest(principal, action, spec.name, document, spec.digest))


def test_rules_see_the_principal_the_action_and_the_spec(rules: Path) -> None:
    policy = CedarPolicy(rules, roles={"ada": ["publisher"]})
    assert ask(policy, "anybody", "read").allow
    assert ask(policy, "ada", "create") == Decision(True, "", "publishers-publish")
    assert ask(policy, "bob", "run").rule == "safe-tools-run"
    assert ask(policy, "bob", "run", safety_level="high", timeout_seconds=1.5).rule == "quick-tools-run"
    refused = ask(policy, "ada", "update", tags=("payments; really",))
    assert refused == Decision(False, "the rule 'hands-off-payments' forbids it", "hands-off-payments")


def test_what_no_rule_permits_is_refused(rules: Path) -> None:
    policy = CedarPolicy(rules, roles={"ada": ["publisher"]})
    assert ask(policy, "bob", "create") == Decision(False, "no rule permits it")
    assert not ask(policy, "ada", "delete").allow
    assert not ask(policy, "bob", "run", safety_level="high", timeout_seconds=2.5).allow


def test_an_empty_file_permits_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    assert not ask(CedarPolicy(tmp_path / "empty"), "ada", "read").allow


@pytest.mark.parametrize(
    "metadata",
    [
        {"__extn": {"fn": "decimal", "arg": "nonsense"}},
        {"__entity": {"type": "User", "id": "treasurer"}},
        {"__expr": "principal"},
        {"x": None, "y": [None, 1, "two", {"z": 2.5}], "big": 2**70, "huge": 1e300, "deep": {"a": {"b": []}}},
        {"": "", '"': "\u2028"},
    ],
)
def test_no_metadata_upsets_the_rules(rules: Path, metadata: dict[str, Any]) -> None:
    policy = CedarPolicy(rules)
    assert ask(policy, "ada", "read", metadata=metadata) == Decision(True, "", "policy0")


def test_names_with_quotes_are_names(rules: Path) -> None:
    assert ask(CedarPolicy(rules), 'x" || true || "', "create").allow is False


def rewrite(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1_000_000))


def test_a_changed_file_is_read_again_and_old_decisions_are_forgotten(rules: Path) -> None:
    policy = CedarPolicy(rules)
    assert ask(policy, "ada", "read").allow
    rewrite(rules, "forbid(principal, action, resource);")
    assert not ask(policy, "ada", "read").allow


def test_a_broken_change_leaves_the_old_rules_in_force(rules: Path, caplog: pytest.LogCaptureFixture) -> None:
    policy = CedarPolicy(rules)
    rewrite(rules, "permit(principal, action, resource);\npermit(nonsense);")
    with caplog.at_level(logging.ERROR):
        assert not ask(policy, "bob", "delete").allow
    assert "line 2" in caplog.text
    rules.unlink()
    assert not ask(policy, "bob", "delete").allow
    rewrite(rules, "permit(principal, action, resource);")
    assert ask(policy, "bob", "delete").allow


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("permit(principl, action, resource);", 1),
        ("// a; comment\n\npermit(principal, action, resource);\n\n// another\npermit(principal, action);", 6),
        ('permit(principal, action, resource) when { resource.x == ";\\";" };\n\noops(1);\n', 3),
        ("permit(principal, action, resource) when { principal.x == }", 1),
        ("permit(principal, action, resource);\npermit(principal, action, resource)", 2),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "wrong.cedar"
    path.write_text(text)
    with pytest.raises(SettingsError, match=rf"wrong\.cedar' is wrong in the rule at line {line}: ") as caught:
        CedarPolicy(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_settings_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        CedarPolicy(tmp_path / "nothing.cedar")


def test_a_file_that_cannot_be_looked_at_leaves_the_old_rules_in_force(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "all.cedar").write_text("permit(principal, action, resource);")
    policy = CedarPolicy(folder / "all.cedar")
    folder.rename(tmp_path / "moved")
    folder.write_text("a file now")
    assert ask(policy, "ada", "read").allow
    with pytest.raises(SettingsError, match="cannot be read"):
        CedarPolicy(folder / "all.cedar")
