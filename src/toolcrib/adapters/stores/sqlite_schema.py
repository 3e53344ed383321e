"""The tables of the SQLite store, and how an older file becomes a current one.

``tool_data`` says what a tool is, ``tool_execution`` how it runs. The whole document stands in ``tool_data.document``;
the columns that queries need are stored beside it, the others are read out of it when somebody asks for them.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from toolcrib.adapters.sqlite import transaction
from toolcrib.core.errors import StoreError
from toolcrib.core.json import MASK
from toolcrib.core.ranking import index_words
from toolcrib.formats.toolentry import FIELD_PATHS, TOOL_EXECUTION

APPLICATION_ID = 0x54435242
"""In the file's header: this database is a tool crib."""

_FIRST = (
    """
    CREATE TABLE tool_data (
        tool_id TEXT PRIMARY KEY NOT NULL,
        version INTEGER NOT NULL,
        etag TEXT NOT NULL,
        written_at REAL NOT NULL,
        search_id INTEGER NOT NULL,
        tool_type TEXT,
        category TEXT,
        tool_search_description TEXT,
        tool_metadata TEXT,
        document TEXT NOT NULL,
        tool_tags TEXT AS (json_extract(document, '$.tags')) VIRTUAL,
        tool_man_page_doc TEXT AS (json_extract(document, '$.manual')) VIRTUAL,
        tool_api_spec TEXT AS (json_extract(document, '$.api_spec')) VIRTUAL,
        tool_custom_actions_dsl_map TEXT AS (json_extract(document, '$.actions')) VIRTUAL,
        default_tool_usage_credentials TEXT AS (json_extract(document, '$.credentials')) VIRTUAL
    )
    """,
    "CREATE INDEX tool_data_type ON tool_data (tool_type, tool_id)",
    "CREATE INDEX tool_data_category ON tool_data (category, tool_id)",
    """
    CREATE TABLE tool_execution (
        tool_id TEXT PRIMARY KEY NOT NULL REFERENCES tool_data (tool_id) ON DELETE CASCADE,
        tool_execution_mode TEXT,
        tool_policy_rule_uri TEXT,
        tool_source_code_link TEXT,
        tool_service_url TEXT,
        tool_system_function_rpc_id TEXT,
        tool_validation_policy_rule_uri TEXT,
        tool_validation_mode TEXT
    ) WITHOUT ROWID
    """,
    "CREATE INDEX tool_execution_by_mode ON tool_execution (tool_execution_mode, tool_id)",
    "CREATE INDEX tool_execution_by_policy ON tool_execution (tool_policy_rule_uri, tool_id)",
    """
    CREATE TABLE tool_label (
        field TEXT NOT NULL,
        value TEXT NOT NULL,
        tool_id TEXT NOT NULL,
        PRIMARY KEY (field, value, tool_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE VIRTUAL TABLE tool_text USING fts5 (
        tool_id UNINDEXED, name, description, tags, tokenize = 'unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TABLE tool_history (
        tool_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        etag TEXT NOT NULL,
        written_at REAL NOT NULL,
        deleted INTEGER NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (tool_id, version)
    )
    """,
    """
    CREATE TABLE tool_outbox (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        tool_id TEXT NOT NULL,
        payload TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        not_before REAL NOT NULL DEFAULT 0,
        last_error TEXT NOT NULL DEFAULT ''
    )
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
)

_CLAIMS = ("CREATE TABLE tool_claim (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID",)

_ONE_RANKING = (
    "DROP TABLE tool_text",
    # The words are ours already (core.ranking), so this tokenizer only parts them at the blanks.
    """
    CREATE VIRTUAL TABLE tool_text USING fts5 (
        tool_id UNINDEXED, words, detail = none, columnsize = 0, tokenize = 'ascii'
    )
    """,
    "INSERT INTO tool_text (rowid, tool_id, words) SELECT search_id, tool_id, index_words(document) FROM tool_data",
)

_OWNERS = (
    "ALTER TABLE tool_data ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE tool_history ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
)

_DEFINITIONS = (
    "ALTER TABLE tool_data ADD COLUMN definition INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tool_history ADD COLUMN definition INTEGER NOT NULL DEFAULT 0",
)

_AS_SHOWN = (
    # Both columns said what is kept; now they say what the doors show. No row of the table is written for that.
    "ALTER TABLE tool_data DROP COLUMN tool_api_spec",
    """
    ALTER TABLE tool_data ADD COLUMN tool_api_spec TEXT AS (
        CASE
            WHEN coalesce(json_extract(document, '$.api_spec'), '{}') <> '{}'
            THEN json_extract(document, '$.api_spec')
            WHEN coalesce(json_extract(document, '$.parameters.properties'), '{}') = '{}'
                AND coalesce(json_extract(document, '$.returns'), '{}') = '{}'
            THEN '{}'
            ELSE json_object('input', json_extract(document, '$.parameters'),
                             'output', json_extract(document, '$.returns'))
        END
    ) VIRTUAL
    """,
    "ALTER TABLE tool_data DROP COLUMN default_tool_usage_credentials",
    "ALTER TABLE tool_data ADD COLUMN default_tool_usage_credentials TEXT NOT NULL DEFAULT '{}'",
    """
    UPDATE tool_data SET default_tool_usage_credentials = masked_credentials(document)
    WHERE instr(document, '"credentials":{}') = 0
    """,
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _CLAIMS, _ONE_RANKING, _OWNERS, _DEFINITIONS, _AS_SHOWN)
"""Entry n brings a file from version n to n + 1. Entries are only ever added.

The SQL functions ``index_words`` and ``masked_credentials`` give what stands beside a document, as it is made now.
"""

EXECUTION_COLUMNS = {key: tuple(FIELD_PATHS[key].split(".")) for key in TOOL_EXECUTION}
"""The columns of ``tool_execution`` and where the document has them."""


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the file to the current version, in one transaction; StoreError if it is not one of ours."""
    current = len(MIGRATIONS)
    if _number(connection, "user_version") == current:
        return
    connection.create_function("index_words", 1, lambda text: index_words(json.loads(text)))
    connection.create_function("masked_credentials", 1, lambda text: masked_credentials(json.loads(text)))
    with transaction(connection):
        version = _number(connection, "user_version")
        if version > current:
            raise StoreError(f"the catalogue {path!r} was written by a newer Toolcrib; update this one to read it")
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreError(f"{path!r} is a database of something else, not a catalogue; choose another file")
        for steps in MIGRATIONS[version:]:
            for step in steps:
                connection.execute(step)
        connection.execute(f"PRAGMA user_version = {current}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def masked_credentials(document: dict[str, Any]) -> str:
    """The names of a tool's credentials, as JSON."""
    return json.dumps(dict.fromkeys(document.get("credentials") or (), MASK), ensure_ascii=False)


def execution_row(document: dict[str, Any]) -> tuple[str | None, ...]:
    """The values of EXECUTION_COLUMNS."""
    return tuple(_text_at(document, path) for path in EXECUTION_COLUMNS.values())


def _text_at(document: Any, path: tuple[str, ...]) -> str | None:
    for segment in path:
        document = document.get(segment) if isinstance(document, dict) else None
    return document if isinstance(document, str) else None
