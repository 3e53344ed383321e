"""Fuzz targets: where a stranger's bytes come in. `make test` gives each some seconds, `make fuzz` minutes."""

from tests.attacks.fuzz import archives, filters, graphql, http, specs
from tests.attacks.fuzz.target import Target

TARGETS: dict[str, Target] = {module.TARGET.name: module.TARGET for module in (archives, specs, filters, graphql, http)}
