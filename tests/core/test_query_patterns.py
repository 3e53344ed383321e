"""Regular expressions: the meaning of Python's and PCRE's, without what makes those hang."""

import random
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolcrib.core.errors import InvalidQueryError
from toolcrib.core.query import Pattern
from toolcrib.core.query.portable import literal_parts, server_side
from toolcrib.core.query.syntax import OPTIONS

atoms = st.sampled_from(
    ("a", "b", ".", "[ab]", "[^a]", r"\w", r"\W", r"\s", r"\d", r"\n", "^", "$", r"\b", r"\B", r"\A", "$\\n", "a?$")
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(("*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", ""))),
    ),
    max_leaves=7,
)
texts = st.text("ab A_1\n-", max_size=8)


@settings(max_examples=500, deadline=None)
@given(expressions, texts, st.sampled_from(("", "i", "s", "is")))
def test_it_means_what_python_means(expression: str, text: str, options: str):
    assume(text or r"\B" not in expression)  # Python finds no \B in an empty text; PCRE does, and so do we
    flags = {"i": re.IGNORECASE, "s": re.DOTALL}
    expected = re.compile(expression, sum((flags[option] for option in options), re.ASCII)).search(text)
    assert Pattern(expression, options).search(text) == bool(expected)


@pytest.mark.parametrize(
    ("expression", "options", "text", "found"),
    [
        ("^b", "m", "a\nb", True),
        ("^$", "m", "a\n", False),  # PCRE: no line begins after the newline that ends the text
        ("a$", "", "a\n", True),
        ("a$", "", "a\n\n", False),
        (r"a\z", "", "a\n", False),
        (r"a\Z", "", "a\n", True),
        ("a$", "m", "a\nb", True),
        (r"\w", "", "é", False),
        (r"\d", "", "٣", False),
        ("É", "i", "é", True),
        ("k", "i", "\u212a", False),  # the Kelvin sign is not a k
        ("(?i)WEB", "", "web", True),
        ("[A-C]x", "i", "bX", True),
        ("[^a]", "i", "A", False),
        ("[]a]", "", "]", True),
        ("[a-]", "", "-", True),
        (r"[\d\-]", "", "-", True),
        (r"[\W]", "", "-", True),
        (r"\x41", "", "A", True),
        ("a{2}", "", "aa", True),
        ("", "", "", True),
        ("x*", "", "", True),
        (r"\.\*\\", "", ".*\\", True),
        (r"\B", "", "aéb", False),  # not between the bytes of one character
        ("a$\\n", "", "a\n", True),
        (r"a\Z\s\z", "", "a\n", True),
        (r"a\z\s", "", "a\n", False),
        ("a$", "", "é" * 990 + "a\n", True),
        ("é" * 990 + "a$", "", "é" * 990 + "a\n", True),
    ],
)
def test_examples(expression: str, options: str, text: str, found: bool):
    assert Pattern(expression, options).search(text) is found


@settings(max_examples=500, deadline=None)
@given(expressions, texts, st.sampled_from(("", "i", "m", "s", "im")))
def test_what_a_server_is_asked_holds_every_match(expression: str, text: str, options: str):
    pattern = Pattern(expression, options)
    asked, exact = server_side(pattern)
    answers = [Pattern(part, OPTIONS).search(text) for part in asked]
    if exact:
        assert answers == [pattern.search(text)]
    elif pattern.search(text):
        assert all(answers)


@settings(max_examples=500, deadline=None)
@given(expressions, texts, st.sampled_from(("", "i")))
def test_literal_parts_are_in_every_match(expression: str, text: str, options: str):
    pattern = Pattern(expression, options)
    if pattern.search(text):
        assert all(part in text.lower() for part in literal_parts(pattern.tree))


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("web", True),
        ("^web.*tool$", True),
        (".*web.*", True),
        ("(web|nlp)s?", True),
        (r"\w{1,30}-\d{4}", True),
        ("web.*tool", False),
        ("(a+)+$", False),
        ("(a|a){30}", False),
        ("(a?){30}a{30}", False),
        ("a.*b.*c", False),
    ],
)
def test_only_what_is_quick_goes_to_a_server(expression: str, exact: bool):
    assert server_side(Pattern(expression))[1] is exact


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        (r"(a)\1", "back-reference"),
        ("(?=a)", "look-around"),
        ("(?<!a)b", "look-around"),
        ("(?P<x>a)", "named groups"),
        ("(?>a)", "look-around"),
        ("(*UCP)a", "'(*'"),
        ("a++", "possessive"),
        ("a**", "repeats a repetition"),
        ("*a", "repeats nothing"),
        ("^*", "repeats an anchor"),
        ("(a", "')'"),
        ("a)", "closes nothing"),
        ("[a", "']'"),
        ("[z-a]", "backwards"),
        ("[[:alpha:]]", "'[:'"),
        ("a{x}", "'{'"),
        ("a{3,2}", "count"),
        ("a{1000}", "count"),
        ("(a{200}){200}", "written out"),
        ("(?i)" + "[Ꭰ-Ᏽ]" * 190, "written out"),
        ("\\", "ends where"),
        (r"\p{L}", r"'\p'"),
        (r"\xZZ", "hexadecimal"),
        ("a" * 2000, "1000 characters"),
        ("(" * 40 + ")" * 40, "30 deep"),
    ],
)
def test_what_is_refused_is_named(expression: str, named: str):
    with pytest.raises(InvalidQueryError) as caught:
        Pattern(expression)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "found"),
    [("(a+)+$", False), ("(a|a)*$", True), ("(a|aa)+$", False), ("(a*)*b", False), ("a*a*a*a*a*b", False),
     (".*.*.*x", False), ("(.*)*y", False), ("(a?){30}a{30}b", False)],
)  # fmt: skip
def test_no_expression_hangs(expression: str, found: bool):
    assert Pattern(expression).search("a" * 100_000 + "!") is found


def test_an_expression_whose_automaton_would_explode_is_answered():
    text = "".join(random.Random(1).choices("ab", k=100_000))
    pattern = Pattern("(a|b)*a(a|b){150}c")
    assert not pattern.search(text)
    assert pattern.search(text + "a" * 151 + "c")


def test_a_text_that_no_encoding_has_matches_nothing_of_it():
    assert Pattern("b").search("\ud800b")
    assert not Pattern("\\w").search("\ud800")
