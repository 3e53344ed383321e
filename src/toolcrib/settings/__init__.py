"""Settings: the only reader of the environment and of configuration files."""

from toolcrib.settings.fields import PREFIX, Description, Settings, describe
from toolcrib.settings.reading import load_settings
from toolcrib.settings.secrets import MASK, Secrets, is_secret

__all__ = ["MASK", "PREFIX", "Description", "Secrets", "Settings", "describe", "is_secret", "load_settings"]
