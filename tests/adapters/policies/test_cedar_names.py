"""Which policy rules a Cedar file serves."""

import pytest

from toolcrib.adapters.policies.cedar_names import served_rules

RULES = """
@id("policies://named")
permit(principal, action, resource);
// "policies://comment"
forbid(principal in Role::"policies://role", action, resource) when {
  resource has policy_rule_uri && ["policies://in-set"].contains(resource.policy_rule_uri)
  && resource.policy_rule_uri like "policies://pay/*/v*" && resource.name like "*"
} unless { resource.validation_policy_rule_uri like "check*" };
"""


@pytest.mark.parametrize(
    "uri",
    ["policies://named", "policies://in-set", "policies://pay/cards/v2", "policies://pay//v", "check", "check://x"],
)
def test_a_rule_that_is_called_so_or_speaks_of_it_serves_it(uri: str) -> None:
    assert uri in served_rules(RULES)


@pytest.mark.parametrize(
    "uri",
    [
        "policies://comment",
        "policies://role",
        "policies://pay/v1",
        "policies://pay/x/w1",
        "policies://named/v2",
        "chec",
    ],
)
def test_others_are_served_by_nobody(uri: str) -> None:
    assert uri not in served_rules(RULES)


def test_a_long_uri_is_judged_in_one_walk() -> None:
    pattern = "*".join("a" * 200)
    rules = served_rules(f'permit(principal, action, resource) when {{ resource.policy_rule_uri like "{pattern}" }};')
    assert "a" * 100_000 in rules
    assert "a" * 100_000 + "b" not in rules
