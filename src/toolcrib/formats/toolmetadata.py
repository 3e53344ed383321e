"""The Brain's ToolMetadata: what its ``tools.json`` is a list of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.names import check_name
from toolcrib.core.spec import ToolSpec, explain

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
            raise explain(error, data, known=cls.model_fields) from None

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
