"""Who is calling, whether they may, and how often: the same for every door."""

from toolcrib.core.roles import LOCAL, Principal, Role, require
from toolcrib.surfaces.auth.guard import Access, Guard

__all__ = ["LOCAL", "Access", "Guard", "Principal", "Role", "require"]
