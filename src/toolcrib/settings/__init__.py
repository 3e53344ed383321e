"""Settings: the only reader of the environment and of configuration files."""

from toolcrib.settings.fields import Description, Settings, describe, file_url, load_settings
from toolcrib.settings.secrets import Secrets

__all__ = ["Description", "Secrets", "Settings", "describe", "file_url", "load_settings"]
