"""The composition root: settings in, running system out, for library, command line, service and MCP server alike.

Only this package names concrete adapters, and it imports each when it is needed, so that nobody pays for a backend that
they do not use.
"""

from toolcrib.adapters.files import make_folder, replacing, try_writing
from toolcrib.bootstrap.binding import address_rules
from toolcrib.bootstrap.local import known_names, plugin_folders, sample_specs, seed_samples
from toolcrib.bootstrap.policies import open_policy
from toolcrib.bootstrap.sandboxes import open_sandbox
from toolcrib.bootstrap.seals import new_key, open_seal
from toolcrib.bootstrap.stores import close_data_folder, open_audit, open_blobs, open_outbox, open_store, open_tokens
from toolcrib.bootstrap.system import System, open_catalogue, open_system, rotate_seal

__all__ = [
    "System", "address_rules", "close_data_folder", "known_names", "make_folder", "new_key", "open_audit",
    "open_blobs", "open_catalogue", "open_outbox", "open_policy", "open_sandbox", "open_seal", "open_store",
    "open_system", "open_tokens", "plugin_folders", "replacing", "rotate_seal", "sample_specs", "seed_samples",
    "try_writing",
]  # fmt: skip
