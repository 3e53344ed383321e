"""The catalogue: tools that outlive the process."""

from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.entries import Entry, Hit, Page

__all__ = ["Catalogue", "Entry", "Hit", "Page"]
