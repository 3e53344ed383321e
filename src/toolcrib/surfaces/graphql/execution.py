"""From the text of a GraphQL request to its answer. Synchronous: a door runs it in a thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    Lexer,
    Source,
    Token,
    execute_sync,
    get_operation_ast,
    get_variable_values,
    validate,
)
from graphql.language.parser import Parser

from toolcrib.core.errors import UNEXPECTED, InvalidQueryError, ToolcribError
from toolcrib.surfaces.graphql.limits import MAX_CHARACTERS, MAX_TOKENS, TooMuchError, check_cost, check_shape
from toolcrib.surfaces.graphql.schema import SCHEMA, Reader
from toolcrib.surfaces.http.errors import RequestError

_log = logging.getLogger(__name__)

_MOST_KEPT, _LONGEST_KEPT = 64, 4000
"""Documents, and characters of one: parsed, it takes some hundred times as much."""


def answer(request: object, reader: Reader) -> dict[str, Any]:
    """The ``data`` and ``errors`` of a request. Only a request that is none at all raises RequestError."""
    text, variables, name = _parts(request)
    try:
        document, problems = _prepared(text)
        if document is None:
            return {"errors": list(problems)}
        operation = get_operation_ast(document, name)
        if operation is None:
            raise InvalidQueryError("name one of the operations of the document in 'operationName'")
        values = get_variable_values(SCHEMA, operation.variable_definitions or (), dict(variables), max_errors=20)
        if isinstance(values, list):
            return {"errors": list(map(formatted, values))}
        check_cost(document, operation, values)
    except (GraphQLError, ToolcribError) as error:
        return {"errors": [formatted(error)]}
    result = execute_sync(SCHEMA, document, context_value=reader, variable_values=dict(variables), operation_name=name)
    errors = {"errors": [formatted(error) for error in result.errors]} if result.errors else {}
    return {"data": result.data, **errors}


def _parts(request: object) -> tuple[str, Mapping[str, Any], str | None]:
    if not isinstance(request, Mapping):
        raise RequestError("a GraphQL request is a JSON object with a 'query'")
    text, variables, name = request.get("query"), request.get("variables"), request.get("operationName")
    if not isinstance(text, str) or not text.strip():
        raise RequestError("a GraphQL request needs a 'query' of text")
    if variables is not None and not isinstance(variables, Mapping):
        raise RequestError("the 'variables' of a GraphQL request must be an object")
    if name is not None and not isinstance(name, str):
        raise RequestError("the 'operationName' of a GraphQL request must be text")
    return text, variables or {}, name or None


_Prepared = tuple[DocumentNode | None, tuple[dict[str, Any], ...]]


def _prepared(text: str) -> _Prepared:
    """A document, parsed and validated, or what is wrong with it. One as programs send it is remembered by its text."""
    return _kept(text) if len(text) <= _LONGEST_KEPT else _checked(text)


@lru_cache(maxsize=_MOST_KEPT)
def _kept(text: str) -> _Prepared:
    return _checked(text)


def _checked(text: str) -> _Prepared:
    try:
        document = _parsed(text)
        check_shape(document)
        problems = validate(SCHEMA, document, max_errors=20)
    except RecursionError:
        raise InvalidQueryError("the GraphQL query is nested too deep") from None
    return None if problems else document, tuple(formatted(problem) for problem in problems)


def _parsed(text: str) -> DocumentNode:
    """The document. Its tokens do not hold one another: they would live on until the garbage collector comes."""
    if len(text) > MAX_CHARACTERS:
        raise TooMuchError(f"the GraphQL query has more than {MAX_CHARACTERS:,} characters; use variables")
    lexer = Lexer(Source(text))
    first = lexer.token
    try:
        return Parser(lexer.source, max_tokens=MAX_TOKENS, lexer=lexer).parse_document()
    finally:
        _unlink(first)


def _unlink(token: Token | None) -> None:
    while token is not None:
        token.next, token = None, token.next


def formatted(error: GraphQLError | ToolcribError) -> dict[str, Any]:
    """One error as GraphQL tells it, with our ``code`` and the HTTP ``status`` it would have elsewhere."""
    if isinstance(error, ToolcribError):
        return {"message": str(error), "extensions": _extensions(error)}
    shown: dict[str, Any] = dict(error.formatted)
    cause = error.original_error
    if cause is None or isinstance(cause, GraphQLError) or error.path is None:
        # a value that could not be coerced wraps the reason; what no resolver raised has no path
        return shown | {"extensions": {"code": "invalid_query", "status": 400}}
    if isinstance(cause, ToolcribError):
        return shown | {"extensions": _extensions(cause)}
    _log.error("a GraphQL resolver failed", exc_info=cause)
    return shown | {"message": str(UNEXPECTED), "extensions": _extensions(UNEXPECTED)}


def _extensions(error: ToolcribError) -> dict[str, Any]:
    return {"code": error.code, "status": error.answer.http}
