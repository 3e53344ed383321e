"""The Brain's ToolMetadata: what its ``tools.json`` is a list of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.names import check_name
from toolcrib.core.spec import ToolSpec, explain

_PACKAGE = "{package_name}"
INSTALL_COMMAND = f"pip install {_PACKAGE}"


def _like_the_contract(schema: dict[str, Any]) -> None:
    """The published JSON Schema leaves these out."""
    schema.pop("additionalProperties", None)
    schema["properties"].pop("metadata")
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
        validate_default=True,
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

    metadata: dict[str, Any] = Field({})
    """What the contract has no word for. ``binding`` says how the tool runs, ``brick`` what it takes and gives."""

    @field_validator("name")
    @classmethod
    def _name_is_a_name(cls, name: str) -> str:
        return check_name(name)

    @field_validator("pip_install_command")
    @classmethod
    def _command_names_the_package(cls, command: str, info: ValidationInfo) -> str:
        return command.replace(_PACKAGE, info.data.get("package_name", _PACKAGE))

    @property
    def install_command(self) -> str:
        """``pip_install_command``, which names the package."""
        return self.pip_install_command

    @model_serializer(mode="wrap")
    def _contract_first(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Whoever says nothing beyond the contract sees nothing beyond it."""
        told: dict[str, Any] = serialize(self)
        if not told.get("metadata"):
            told.pop("metadata", None)
        return told

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
        """The same tool as a spec; ToolValidationError names a binding that is none."""
        fields = self.model_dump()
        metadata = dict(fields.pop("metadata", {}))
        binding = metadata.pop("binding", {})
        return ToolSpec.parse({**fields, "metadata": metadata, **({"binding": binding} if binding else {})})

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> ToolMetadata:
        """The same tool in The Brain's words; ToolValidationError if they cannot say all that the spec says."""
        fields = spec.model_dump(mode="json", exclude_defaults=True)
        known = cls.model_fields.keys() | {"binding"}
        beyond = sorted(fields.keys() - known) + (["metadata.binding"] if "binding" in spec.metadata else [])
        if beyond:
            raise ToolValidationError(
                f"tool {spec.name!r} has {', '.join(map(repr, beyond))}, which The Brain's file has no place for; "
                "keep it in another store"
            )
        fields.pop("binding", None)
        fields["metadata"] = cls.metadata_of(spec)
        absent = {"tool_type": "", "package_name": "", "pip_install_command": "", "capabilities": []}
        return cls.parse(absent | fields)

    @staticmethod
    def metadata_of(spec: ToolSpec) -> dict[str, Any]:
        """The spec's own metadata, with its binding among them."""
        binding = spec.binding.model_dump(exclude_defaults=True)
        return {**spec.model_dump(include={"metadata"})["metadata"], **({"binding": binding} if binding else {})}
