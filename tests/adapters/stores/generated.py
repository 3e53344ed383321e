"""Generated documents and filters that meet often: few names, few values, every operator."""

from typing import Any

from hypothesis import strategies as st

KEYS = ("a", "b", "0", "1", "$ref", "$id", "x.y", "ü", "", "\0a", "＄b")
SEGMENTS = ("a", "b", "0", "1", "$ref", "$id", "ü", "01", "2")
TEXTS = ("", "a", "b", "ab", "Ab\n", "aab b", "ß", "K", "0", "a\nb", "web tool", "x'\"\\y", "ǆ-ǅ")
NUMBERS = (0, 1, -1, 2, 3, 0.0, 1.0, 1.5, -0.0, 2**31, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 0.1, 1e300, 5e-324)
LARGE = (2**63, 2**64 - 1, -(2**64), 10**33, 1e19, float(2**63))

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.floats(-10, 10), st.integers(-3, 3)
)
stored_scalars = scalars | st.sampled_from(LARGE)


def _nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    )


values = _nested(scalars)
stored_values = _nested(stored_scalars)
words = st.sampled_from(("", "web", "Web", "nlp", "a", "b", "ü"))


@st.composite
def documents(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A tool's document: its indexed fields as a spec has them, or absent; anything in the others."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "tool_type": words,
        "category": words,
        "execution_mode": words,
        "policy_rule_uri": words,
        "description": st.sampled_from(TEXTS),
        "tags": st.lists(words, max_size=3),
        "capabilities": st.lists(words, max_size=3),
        "metadata": stored_values,
        "parameters": st.dictionaries(st.sampled_from(KEYS), stored_values, max_size=3),
        "a": stored_values,
        "b": stored_values,
        "timeout_seconds": st.none() | st.floats(0.1, 5),
    }
    document: dict[str, Any] = {"name": name}
    for field in draw(st.lists(st.sampled_from(sorted(fields)), max_size=6, unique=True)):
        document[field] = draw(fields[field])
    return document


ROOTS = ("tool_type", "category", "execution_mode", "policy_rule_uri", "description", "tags", "capabilities", "name",
         "metadata", "parameters", "a", "b", "a", "b", "metadata", "timeout_seconds")  # fmt: skip
paths = st.builds(
    lambda root, rest: ".".join([root, *rest]), st.sampled_from(ROOTS), st.lists(st.sampled_from(SEGMENTS), max_size=3)
)
operands = values | words | st.sampled_from(("t0", "t1", "t2"))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict) or not any(key.startswith("$") for key in value)


plain_operands = operands.filter(_is_plain)
plain_values = values.filter(_is_plain)
_fixed_patterns = st.sampled_from((
    "a", "^a", "b$", "^a.*b", "a.*b", ".*", "a+b?", "(a|b)+", "[ab]{1,2}", r"\w+\s\w", r"\bb\b", "^$", "", r"\d",
    "^b", "b\\Z", r"\Aa", "k", "ß", "[^a]", ".b", "a|web", "(?i)WEB", "x'", r"\\", "ǆ", "(a*)*b", "[a-zA-Z]-",
))  # fmt: skip
_atoms = st.sampled_from(
    ("a", "b", "A", "ß", "K", " ", "-", ".", "[ab]", "[^a]", "[a-c ]", r"\w", r"\W", r"\s", r"\d", r"\S",
     r"[\s\w]", r"\n", "^", "$", r"\b", r"\B", r"\A", r"\Z", r"\z")
)  # fmt: skip
patterns = _fixed_patterns | st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from(("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", ""))),
    ),
    max_leaves=6,
)
TYPES = ("double", "string", "object", "array", "bool", "null", "int", "long", "decimal", "number", 1, 2, 3, 4, 8, 10,
         16, 18, 19)  # fmt: skip


def has_order(value: Any) -> bool:
    return not isinstance(value, dict) and (not isinstance(value, list) or all(map(has_order, value)))


def _operators(deeper: st.SearchStrategy[Any], elements: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    one = {
        **dict.fromkeys(("$eq", "$ne"), operands),
        **dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), operands.filter(has_order)),
        "$in": st.lists(plain_operands, max_size=4),
        "$nin": st.lists(plain_operands, max_size=4),
        "$exists": st.booleans(),
        "$type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3),
        "$size": st.integers(0, 3),
        "$elemMatch": elements,
        "$not": deeper,
    }
    single = st.one_of([st.builds(lambda value, name=name: {name: value}, made) for name, made in one.items()])
    regex = st.builds(
        lambda text, options: {"$regex": text, "$options": options},
        patterns,
        st.sampled_from(("", "i", "m", "s", "im", "is")),
    )
    single = single | regex
    return single | st.builds(lambda left, right: left | right, single, single)


_value_operators: st.SearchStrategy[Any] = st.deferred(lambda: _operators(_value_operators, elements))
elements: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        _value_operators
        | st.dictionaries(
            st.sampled_from(SEGMENTS).filter(lambda name: name[0] != "$"), operators | plain_values, max_size=2
        )
    )
)
_all = st.builds(lambda items: {"$all": items}, st.lists(plain_operands, max_size=3)) | st.builds(
    lambda items: {"$all": [{"$elemMatch": item} for item in items]}, st.lists(elements, min_size=1, max_size=2)
)
operators: st.SearchStrategy[Any] = st.deferred(lambda: _operators(operators, elements) | _all)


clauses = st.dictionaries(paths, operators | plain_operands, min_size=1, max_size=2)
filters: st.SearchStrategy[dict[str, Any]] = st.recursive(
    clauses,
    lambda inner: st.builds(
        lambda name, parts: {name: parts},
        st.sampled_from(("$and", "$or", "$nor")),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=4,
)


@st.composite
def pointed(draw: st.DrawFn, catalogue: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """A filter about a value that one of the documents has, so that it tells documents apart."""
    value: Any = draw(st.sampled_from(catalogue))
    path: list[str] = []
    while isinstance(value, dict | list) and value and (not path or draw(st.booleans())):
        if isinstance(value, dict):
            key = draw(st.sampled_from(sorted(value)))
            if not key or "." in key or "\0" in key or (not path and key.startswith("$")):
                break
            path.append(key)
            value = value[key]
        else:
            index = draw(st.integers(0, len(value) - 1))
            if draw(st.booleans()):
                path.append(str(index))
            value = value[index]
    if not path or not _can_be_asked(value):
        return {"name": "t1"}
    ordered = ("$gt", "$gte", "$lt", "$lte") if has_order(value) else ()
    listed = ("$in", "$nin", "$all") if _is_plain(value) else ()
    operator = draw(st.sampled_from(("$eq", "$ne", "$elemMatch", *listed, *ordered)))
    if operator in {"$in", "$nin", "$all"}:
        value = [value, *draw(st.lists(plain_operands, max_size=2))] if operator != "$all" else [value]
    if operator == "$elemMatch":
        value = {draw(st.sampled_from(("$eq", "$ne", *ordered))): value}
    return {".".join(path): {operator: value}}


def _can_be_asked(value: Any) -> bool:
    """Literals of a filter fit into 64 bits; stored numbers need not."""
    if isinstance(value, dict | list):
        return all(map(_can_be_asked, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


questions = (
    st.integers(1, 4)
    .flatmap(lambda size: st.tuples(*[documents(f"t{number}") for number in range(size)]))
    .flatmap(
        lambda catalogue: st.tuples(st.just(catalogue), st.lists(filters | pointed(catalogue), min_size=2, max_size=8))
    )
)
"""A catalogue, and questions about it."""
