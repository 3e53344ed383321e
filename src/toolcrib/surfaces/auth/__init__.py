"""Who is calling, whether they may, and how often: the same for every door."""

from toolcrib.adapters.tokens import Role
from toolcrib.surfaces.auth.guard import Access, Guard
from toolcrib.surfaces.auth.principal import LOCAL, Principal, require

__all__ = ["LOCAL", "Access", "Guard", "Principal", "Role", "require"]
