"""The Brain's own words: ``ToolMetadata``, and a ``ToolRegistry`` kept in a ``tools.json``.

    registry = ToolRegistry()                      # ~/.thebrain/config/tools.json
    registry.add_tool({"name": "playwright", ...})
    registry.check_compatibility(["playwright", "beautifulsoup4"])

The file is a JSON list of ToolMetadata. A file that is broken, or that holds a bad entry, is reported with its path and
the entry, and never written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from toolcrib.bootstrap import file_path, open_file
from toolcrib.catalogue import Catalogue
from toolcrib.core import stacking
from toolcrib.core.errors import (
    StoreError,
    ToolExistsError,
    ToolNotFoundError,
    ToolValidationError,
    did_you_mean,
)
from toolcrib.core.names import check_name
from toolcrib.core.query import parse
from toolcrib.core.spec import ToolSpec, explain
from toolcrib.core.tool import Tool
from toolcrib.dialects.fields import fields_of
from toolcrib.ports import ANY, Change
from toolcrib.settings import load_settings
from toolcrib.stacking import StackingIndex

__all__ = [
    "StoreError",
    "ToolExistsError",
    "ToolMetadata",
    "ToolNotFoundError",
    "ToolRegistry",
    "ToolValidationError",
    "open_catalogue",
]

INSTALL_COMMAND = "pip install {package_name}"


def _like_the_contract(schema: dict[str, Any]) -> None:
    """The published JSON Schema leaves these two out."""
    schema.pop("additionalProperties", None)
    schema["properties"]["incompatible_with"].pop("title", None)


class ToolMetadata(BaseModel):
    """Représente les métadonnées essentielles d'un outil intégrable dans les pipelines The Brain."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, json_schema_extra=_like_the_contract)

    name: str = Field(
        description="Nom unique et identifiant de l'outil (ex: 'playwright', 'requests', 'beautifulsoup4'). "
        "Utilisé comme ID."
    )
    description: str = Field(description="Courte description textuelle expliquant le rôle principal de l'outil.")
    tool_type: str = Field(
        description="Catégorie fonctionnelle principale de l'outil (ex: 'browser', 'http_client', 'parser', "
        "'anti_bot_service', 'captcha_solver', 'proxy_manager', 'data_storage')."
    )
    package_name: str = Field(
        description="Nom du package Python à installer via pip (ex: 'playwright', 'requests', 'beautifulsoup4')."
    )
    pip_install_command: str = Field(
        INSTALL_COMMAND,
        description="Commande pip exacte pour installer l'outil et ses dépendances spécifiques si nécessaire "
        "(ex: 'pip install playwright', 'pip install beautifulsoup4[lxml]').",
    )
    execution_mode: Literal["sync", "async"] = Field(
        description="Mode d'exécution principal ('sync' ou 'async'). Crucial pour l'orchestration par le module "
        "'executor'."
    )
    capabilities: list[str] = Field(
        description="Liste des capacités ou fonctionnalités clés offertes par l'outil (tags utiles pour la sélection, "
        "ex: 'javascript_rendering', 'anti_cloudflare', 'proxy_rotation', 'html_parsing', 'xml_parsing', "
        "'json_parsing', 'captcha_solving', 'session_management', 'form_submission', 'headless_mode', "
        "'http2_support')."
    )
    compatibilities: list[str] = Field(
        [],
        description="Liste des **noms** ou **types ('type:*')** d'autres outils avec lesquels cet outil est conçu pour "
        "interagir directement ou est généralement utilisé en conjonction (ex: un parser est compatible avec "
        "'type:browser' et 'type:http_client').",
    )
    incompatible_with: list[str] = Field(
        [],
        description="Liste des noms d’outils ou types d’outils (préfixés par 'type:', ex. 'type:browser') avec "
        "lesquels cet outil est explicitement incompatible et ne peut pas fonctionner dans un même pipeline, en raison "
        "de conflits techniques ou de comportements divergents. Prend le pas sur une compatibilité implicite.",
    )
    required_config: list[str] = Field(
        [],
        description="Liste des noms des clés de configuration ou secrets qui DOIVENT être fournis (via le module "
        "'config_secrets') pour que cet outil fonctionne (ex: ['SCRAPERAPI_KEY', 'ANTICAPTCHA_KEY']).",
    )

    @field_validator("name")
    @classmethod
    def _name_is_a_name(cls, name: str) -> str:
        return check_name(name)

    @property
    def install_command(self) -> str:
        """``pip_install_command`` with the package's name filled in."""
        return self.pip_install_command.replace("{package_name}", self.package_name)

    @classmethod
    def parse(cls, data: object) -> ToolMetadata:
        """Checked metadata, or ToolValidationError that names the tool and the field."""
        if isinstance(data, ToolMetadata):
            data = data.model_dump()
        if not isinstance(data, Mapping):
            raise ToolValidationError(f"a tool's metadata is an object, not {data!r:.60}")
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise _complaint(error, data) from None

    def to_spec(self) -> ToolSpec:
        return ToolSpec.parse(self.model_dump())

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> ToolMetadata:
        """The same tool in The Brain's words; ToolValidationError if they cannot say all that the spec says."""
        fields = spec.model_dump(mode="json", exclude_defaults=True)
        beyond = sorted(fields.keys() - cls.model_fields.keys())
        if beyond:
            raise ToolValidationError(
                f"tool {spec.name!r} has {', '.join(map(repr, beyond))}, which The Brain's file has no place for; "
                "keep it in another store"
            )
        absent = {"tool_type": "", "package_name": "", "pip_install_command": "", "capabilities": []}
        return cls.parse(absent | fields)


def _complaint(error: ValidationError, data: Mapping[Any, Any]) -> ToolValidationError:
    first = error.errors(include_url=False)[0]
    complaint = explain(error, data)
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(str(first["loc"][-1]), ToolMetadata.model_fields)
        return ToolValidationError(f"{complaint.message}{hint}")
    return complaint


class ToolRegistry:
    """The tools in a ``tools.json``. Several programs may use the file at once; an answer is what the file says now."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Without a ``path``, the file that the settings name: ``~/.thebrain/config/tools.json``."""
        self.path = Path(path if path is not None else load_settings().brain_file).expanduser()
        self._store = open_file(self.path, _MetadataCodec())
        self._read: tuple[object, StackingIndex] | None = None

    def add_tool(self, metadata: ToolMetadata | Mapping[str, Any], replace: bool = True) -> ToolMetadata:
        """Add a tool, or replace the one of that name; with ``replace=False`` ToolExistsError if there is one."""
        checked = ToolMetadata.parse(metadata)
        self._store.commit([Change(checked.name, checked.to_spec().to_dict(), expected=ANY if replace else None)])
        return checked

    def get_tool(self, name: str) -> ToolMetadata | None:
        record = self._store.get(name)
        return None if record is None else ToolMetadata.from_spec(ToolSpec.parse(record.document))

    def list_tools(self, tool_type: str | None = None, capability: str | None = None) -> list[ToolMetadata]:
        """The tools by name, of one type or with one capability if those are given."""
        return [
            _answer(spec)
            for spec in self._tools()
            if tool_type in (None, spec.tool_type) and (capability is None or capability in spec.capabilities)
        ]

    def get_tools_by_capability(self, capability: str) -> list[ToolMetadata]:
        return self.list_tools(capability=capability)

    def remove_tool(self, name: str) -> bool:
        """Whether there was such a tool; now there is none."""
        try:
            self._store.commit([Change(name, None)])
        except ToolNotFoundError:
            return False
        return True

    def check_compatibility(self, names: Iterable[str], *, strict: bool = False) -> bool:
        """Whether all of the tools stack; ToolNotFoundError names one that is not there."""
        return self.explain_compatibility(names, strict=strict).compatible

    def explain_compatibility(self, names: Iterable[str], *, strict: bool = False) -> stacking.StackReport:
        """The verdict on every pair, with its rule and reason."""
        if isinstance(names, str):
            raise ToolValidationError(f"compatibility is asked of a list of names, not of the text {names!r}")
        tools = {spec.name: spec for spec in self._tools()}
        wanted = list(names)
        missing = next((name for name in wanted if name not in tools), None)
        if missing is not None:
            raise ToolNotFoundError(missing, tools)
        return stacking.check([tools[name] for name in wanted], strict=strict)

    def find_compatible_tools(
        self, name: str, target_type: str | None = None, *, strict: bool = False
    ) -> list[ToolMetadata]:
        """Every tool that stacks with ``name``, of ``target_type`` if that is given."""
        return [_answer(spec) for spec in self._tools().find(name, target_type=target_type, strict=strict)]

    def _tools(self) -> StackingIndex:
        """The file's tools, read again only if the file has changed."""
        seen = self._store.generation()
        if self._read is None or self._read[0] != seen:
            records = self._store.query(parse({}))
            self._read = (seen, StackingIndex(ToolSpec.parse(record.document) for record in records))
        return self._read[1]

    def __len__(self) -> int:
        return len(self._tools())

    def __contains__(self, name: object) -> bool:
        return name in self._tools()

    def __repr__(self) -> str:
        return f"<ToolRegistry in {str(self.path)!r}>"


def _answer(spec: ToolSpec) -> ToolMetadata:
    """Metadata of its own for a caller, who may change it. What comes from the file has been checked already."""
    return ToolMetadata.model_construct(None, **fields_of(spec, ToolMetadata.model_fields))


class _MetadataCodec:
    """An entry of the file is a ToolMetadata, every field written out."""

    def encode(self, document: dict[str, Any]) -> dict[str, Any]:
        return ToolMetadata.from_spec(ToolSpec.parse(document)).model_dump()

    def decode(self, entry: dict[str, Any]) -> dict[str, Any]:
        return ToolMetadata.parse(entry).to_spec().to_dict()


def open_catalogue(url: str = "") -> Catalogue:
    """A catalogue over The Brain's file: ``brain:///path``, or the file that the settings name."""
    path = file_path(url) if url.removeprefix("brain:") else Path(load_settings().brain_file).expanduser()
    store = open_file(path, _MetadataCodec())
    return Catalogue(store, bind=_not_runnable)


def _not_runnable(spec: ToolSpec) -> Tool:
    raise ToolValidationError(f"{spec.name!r} is only described here; The Brain's file does not say how to run it")
