"""Our code in the page: it names elements, finds them, and reads them.

It is put into a document when that is first asked for something, and keeps the handles that snapshots give out.
"""

from __future__ import annotations

from pathlib import Path

_FILES = ("names.js", "find.js", "snapshot.js", "content.js", "facts.js")
_FUNCTIONS = (
    "resolve, nearest, candidates, snapshot, text, html, markdown, table, links, info, forms, submitter, metadata, "
    "pageState, scroll, inView, facts, captchas, answerCaptcha, before, cloak, radio, results, hindrance"
)
_SOURCE = "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _FILES)

_SCRIPT = f"""(() => {{
const KEY = Symbol.for('toolcrib');
if (window[KEY]) return;
{_SOURCE}
const functions = {{ {_FUNCTIONS} }};
async function call(name, argument, from) {{
  if (nextHandle < from) nextHandle = from;
  const value = await functions[name](argument);
  return {{ value, next: nextHandle }};
}}
Object.defineProperty(window, KEY, {{ value: Object.freeze({{ call, element }}) }});
}})()"""

CALL = "([name, argument, from]) => window[Symbol.for('toolcrib')]?.call(name, argument, from) ?? null"
"""Null if the document has not been asked before."""
FIRST_CALL = f"""([name, argument, from]) => {{
{_SCRIPT};
return window[Symbol.for('toolcrib')].call(name, argument, from);
}}"""

ENGINE_NAME = "toolcrib"
ENGINE = """{
  query(root, handle) { return window[Symbol.for('toolcrib')]?.element(handle) ?? null; },
  queryAll(root, handle) { const found = this.query(root, handle); return found ? [found] : []; },
}"""
