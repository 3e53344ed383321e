"""Settings: the only reader of the environment and of configuration files."""

from toolcrib.settings.fields import MASK, Description, Settings, describe, load_settings
from toolcrib.settings.secrets import Secrets

__all__ = ["MASK", "Description", "Secrets", "Settings", "describe", "load_settings"]
