"""All that is wrong with a call is told in one answer, each argument by its name; secrets are not told."""

import datetime
import uuid
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr, model_validator

from toolcrib import InvalidArgumentsError, Tool, ToolRegistry, create_tool, tool


class Cat(BaseModel):
    kind: Literal["cat"]
    born: datetime.date
    lives: int = Field(9, ge=1)


class Dog(BaseModel):
    kind: Literal["dog"]
    id: uuid.UUID


class Span(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def _in_order(self) -> "Span":
        if self.first > self.last:
            raise ValueError("it ends before it begins")
        return self


@tool
async def adopt(
    count: int,
    day: datetime.date,
    names: list[str],
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    when: datetime.date | uuid.UUID | None = None,
    span: Span | None = None,
    **more: datetime.date,
) -> str:
    """Adopt."""
    return repr(pet)


GOOD: dict[str, Any] = {"count": 1, "day": "2026-01-02", "names": []}
DAY = "input should be a valid date or datetime, input is too short"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (
            {"count": "x", "day": "no", "names": [1], "later": "no"},
            {
                "count": '"x" is not of type "integer"',
                "names.0": '1 is not of type "string"',
                "day": DAY,
                "later": DAY,
            },
        ),
        ({"day": "no"}, {"count": "needs", "names": "needs", "day": DAY}),
        (GOOD | {"pet": {"kind": "cat", "lives": 0}}, {"pet.born": "required", "pet.lives": "less than the minimum"}),
        (
            GOOD | {"pet": {"kind": "cow"}},
            {"pet.kind": '"cat" was expected; nor can it be another: "dog" was expected'},
        ),
        (GOOD | {"pet": {"kind": "dog", "id": "x"}, "day": "no"}, {"day": DAY, "pet.id": "valid UUID"}),
        (GOOD | {"pet": 3}, {"pet": '3 is not of type "object"'}),
        (GOOD | {"when": "x"}, {"when": f"{DAY}; nor can it be another: input should be a valid UUID"}),
        (GOOD | {"when": 3}, {"when": '3 is not of type "string"; nor can it be another: 3 is not of type "null"'}),
        (GOOD | {"span": {"first": 2, "last": 1}}, {"span": "it ends before it begins"}),
        (GOOD | {"span": {}}, {"span.first": "required", "span.last": "required"}),
    ],
)
async def test_every_argument_that_is_wrong_is_named(given: dict[str, Any], wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await adopt.execute(given)
    assert caught.value.wrong.keys() == wrong.keys()
    for name, says in wrong.items():
        assert f"{name!r}" in caught.value.wrong[name]
        assert says in caught.value.wrong[name]
        assert caught.value.wrong[name] in str(caught.value)
    result = await ToolRegistry([adopt]).execute("adopt", given)
    assert result.error == str(caught.value)


def built(model: type[BaseModel]) -> Tool:
    return create_tool().name("built").description("Build.").schema(model).implement(lambda **given: given).build()


async def test_a_built_tool_tells_all_too() -> None:
    class Visit(Cat):
        where: str
        span: Span | None = None

    visit = built(Visit)
    with pytest.raises(InvalidArgumentsError) as caught:
        await visit.execute({"kind": "cat", "born": "no", "lives": "x"})
    assert caught.value.wrong.keys() == {"lives", "where", "born"}
    with pytest.raises(InvalidArgumentsError, match=r"^argument 'born' of tool 'built': input should be"):
        await visit.execute({"kind": "cat", "born": "no", "where": "x"})
    with pytest.raises(InvalidArgumentsError, match=r"^the arguments of tool 'built': value error, it ends before"):
        await built(Span).execute({"first": 2, "last": 1})


async def test_a_built_tool_knows_what_was_given() -> None:
    class Outer(BaseModel):
        inner: Cat
        key: SecretStr = SecretStr("hunter2")

    made = await built(Outer).execute({"inner": {"kind": "cat", "born": "2026-01-02"}})
    assert made["inner"].model_fields_set == {"kind", "born"}
    assert made["key"].get_secret_value() == "hunter2"


@tool
async def login(
    user: str, key: Annotated[SecretStr, Field(min_length=8)], others: dict[str, SecretStr | None] | None = None
) -> SecretStr:
    """Log in."""
    return key


@pytest.mark.parametrize(
    "given",
    [
        {"user": "ada", "key": "hunter2"},
        {"user": "ada", "key": ["hunter2"]},
        {"user": {"hunter2": "hunter2"}, "key": "longer than hunter2"},
        {"user": "ada", "key": "longer than hunter2", "others": {"a": ["hunter2"]}},
        {"user": "ada", "key": "longer than hunter2", "others": "hunter2"},
    ],
)
async def test_no_secret_is_told(given: dict[str, Any]) -> None:
    result = await ToolRegistry([login]).execute("login", given)
    assert result.error is not None and "the value is" in result.error
    assert "hunter2" not in repr(result)


def test_no_secret_is_shown_as_a_default() -> None:
    class Account(BaseModel):
        key: SecretStr = SecretStr("hunter2")

    class Accounts(BaseModel):
        first: Account = Account()

    @tool
    def show(accounts: Accounts, key: SecretStr = SecretStr("hunter2")) -> None:  # noqa: B008 - as people write it
        """Show."""

    assert "default" not in repr(show.spec.parameters)
    assert "default" not in repr(built(Accounts).spec.parameters)


def broken(value: Any) -> Any:
    raise KeyError(value)


class Broken(BaseModel):
    n: Annotated[int, AfterValidator(broken)]


@tool
async def checks(n: Annotated[int, AfterValidator(broken)], m: int = 1) -> None:
    """Check."""


@tool
async def makes(n: int = Field(default_factory=lambda: broken("n"))) -> None:
    """Make."""


@pytest.mark.parametrize(("made", "given"), [(checks, {"n": 1}), (makes, {}), (built(Broken), {"n": 1})])
async def test_what_a_validator_raises_is_the_tools_failure(made: Tool, given: dict[str, Any]) -> None:
    result = await ToolRegistry([made]).execute(made.name, given)
    assert result.error_code == "tool_failed"
    assert result.error is not None and "KeyError" in result.error


async def test_a_validator_is_asked_only_for_what_the_schema_takes() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"^argument 'm' of tool 'checks'"):
        await checks.execute({"n": 1, "m": "x"})
    with pytest.raises(InvalidArgumentsError, match=r"^argument 'n' of tool 'checks'"):
        await checks.execute({"n": "x"})
