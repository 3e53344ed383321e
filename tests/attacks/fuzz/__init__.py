"""Fuzz targets: where a stranger's bytes come in. `make test` gives each some seconds, `make fuzz` minutes."""

from tests.attacks.fuzz import answers, archives, filters, graphql, http, pipe, specs
from tests.attacks.fuzz.target import Target

_MODULES = (archives, specs, filters, graphql, http, pipe, answers)

TARGETS: dict[str, Target] = {module.TARGET.name: module.TARGET for module in _MODULES}
