// Handles, visibility, roles and accessible names: what an element is called.

const handles = new WeakMap();
const elements = new Map();
const gone = new FinalizationRegistry((handle) => elements.delete(handle));
let nextHandle = 1;

function handleOf(element) {
  let handle = handles.get(element);
  if (!handle) {
    handle = `e${nextHandle++}`;
    handles.set(element, handle);
    elements.set(handle, new WeakRef(element));
    gone.register(element, handle);
  }
  return handle;
}

function elementOf(handle) {
  const element = elements.get(handle)?.deref();
  return element && element.isConnected ? element : null;
}

function visible(element) {
  if (element.tagName === 'OPTION' || element.tagName === 'OPTGROUP') {
    const select = element.closest('select');
    return Boolean(select) && visible(select);
  }
  if (element.tagName === 'AREA') return true;
  if (!element.checkVisibility({ visibilityProperty: true })) return false;
  const box = element.getBoundingClientRect();
  return (box.width > 0 && box.height > 0) || getComputedStyle(element).display === 'contents';
}

const clean = (text) => (text || '').replace(/[\s\u00a0\u200b]+/g, ' ').trim();
const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', number: 'spinbutton', search: 'searchbox', file: 'file', hidden: 'none', color: 'color',
};
const TAG_ROLES = {
  ARTICLE: 'article', ASIDE: 'complementary', BUTTON: 'button', DETAILS: 'group', DIALOG: 'dialog', FIELDSET: 'group',
  FIGURE: 'figure', FORM: 'form', H1: 'heading', H2: 'heading', H3: 'heading', H4: 'heading', H5: 'heading',
  H6: 'heading', HR: 'separator', IFRAME: 'iframe', IMG: 'img', LI: 'listitem', MAIN: 'main', MENU: 'list', METER: 'meter',
  NAV: 'navigation', OL: 'list', OPTGROUP: 'group', OPTION: 'option', OUTPUT: 'status', PROGRESS: 'progressbar',
  SEARCH: 'search', SUMMARY: 'button', SVG: 'img', svg: 'img', TABLE: 'table', TD: 'cell', TEXTAREA: 'textbox', TH: 'columnheader',
  TR: 'row', UL: 'list', VIDEO: 'video', AUDIO: 'audio', CANVAS: 'canvas',
};

function roleOf(element) {
  const explicit = element.getAttribute('role');
  if (explicit) return explicit.trim().split(/\s+/)[0];
  const tag = element.tagName;
  if (tag === 'A' || tag === 'AREA') return element.hasAttribute('href') ? 'link' : '';
  if (tag === 'INPUT') return INPUT_ROLES[element.type] || 'textbox';
  if (tag === 'SELECT') return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
  if (tag === 'SECTION') return element.hasAttribute('aria-label') || element.hasAttribute('aria-labelledby') ? 'region' : '';
  if (tag === 'HEADER' || tag === 'FOOTER') {
    if (element.closest('article, section, main')) return '';
    return tag === 'HEADER' ? 'banner' : 'contentinfo';
  }
  if (TAG_ROLES[tag]) return TAG_ROLES[tag];
  return element.isContentEditable && !element.parentElement?.isContentEditable ? 'textbox' : '';
}

const NAMED_BY_CONTENT = new Set([
  'button', 'link', 'heading', 'option', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'checkbox', 'radio',
  'switch', 'treeitem', 'columnheader', 'rowheader', 'cell', 'gridcell', 'tooltip', 'listitem', 'row',
]);

function textOf(element, limit = 300) {
  const parts = [];
  let length = 0;
  const walk = (node) => {
    if (length > limit) return;
    if (node.nodeType === Node.TEXT_NODE) {
      parts.push(node.data);
      length += node.data.length;
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      const tag = node.tagName;
      if (tag === 'SCRIPT' || tag === 'STYLE' || tag === 'NOSCRIPT' || tag === 'TEMPLATE') return;
      if (node !== element && node.getAttribute('aria-hidden') === 'true') return;
      if (node !== element && !node.checkVisibility({ visibilityProperty: true }) && getComputedStyle(node).display !== 'contents') return;
      if (tag === 'IMG' && node.alt) parts.push(` ${node.alt} `);
      if (tag === 'BR') parts.push(' ');
      for (const child of childrenOf(node)) walk(child);
      if (!INLINE.has(tag)) parts.push(' ');
    }
  };
  walk(element);
  return cut(clean(parts.join('')), limit);
}

const INLINE = new Set(['A', 'ABBR', 'B', 'BDI', 'BDO', 'CITE', 'CODE', 'DATA', 'DFN', 'EM', 'FONT', 'I', 'INS', 'KBD', 'LABEL', 'MARK', 'Q', 'S', 'SAMP', 'SLOT', 'SMALL', 'SPAN', 'STRONG', 'SUB', 'SUP', 'TIME', 'U', 'VAR', 'WBR']);

function childrenOf(node) {
  if (node.shadowRoot) return node.shadowRoot.childNodes;
  if (node.tagName === 'SLOT') {
    const assigned = node.assignedNodes({ flatten: true });
    if (assigned.length) return assigned;
  }
  return node.childNodes;
}

function byIds(element, attribute) {
  const ids = element.getAttribute(attribute);
  if (!ids) return '';
  const root = element.getRootNode();
  return clean(ids.split(/\s+/).map((id) => root.getElementById?.(id)).filter(Boolean).map((other) => textOf(other)).join(' '));
}

function labelOf(element) {
  const labelled = byIds(element, 'aria-labelledby');
  if (labelled) return labelled;
  if (element.labels?.length) return clean([...element.labels].map((label) => labelText(label, element)).join(' '));
  return '';
}

function labelText(label, control) {
  // A label around a select would otherwise be called after every option in it.
  const copy = label.cloneNode(true);
  for (const inner of copy.querySelectorAll('select, textarea, script, style')) inner.remove();
  return clean(copy.textContent) || textOf(label) || control.name;
}

function nameOf(element, limit = 120) {
  const labelled = byIds(element, 'aria-labelledby') || clean(element.getAttribute('aria-label'));
  if (labelled) return cut(labelled, limit);
  const tag = element.tagName;
  if (tag === 'INPUT' || tag === 'SELECT' || tag === 'TEXTAREA') {
    const label = labelOf(element);
    if (label) return cut(label, limit);
    if (element.type === 'submit' || element.type === 'button' || element.type === 'reset') {
      return cut(clean(element.value) || (element.type === 'submit' ? 'Submit' : element.type === 'reset' ? 'Reset' : ''), limit);
    }
    if (element.type === 'image') return cut(clean(element.alt), limit);
    return cut(clean(element.placeholder) || clean(element.title), limit);
  }
  if (tag === 'IMG' || tag === 'AREA') return cut(clean(element.alt) || clean(element.title), limit);
  if (tag === 'svg') return cut(clean(element.querySelector('title')?.textContent), limit);
  if (tag === 'TABLE' && element.caption) return cut(textOf(element.caption), limit);
  if (tag === 'FIELDSET') return cut(clean(element.querySelector('legend')?.textContent), limit);
  if (tag === 'IFRAME') return cut(clean(element.title) || clean(element.name), limit);
  if (NAMED_BY_CONTENT.has(roleOf(element))) {
    const text = textOf(element, limit);
    if (text) return text;
  }
  return cut(clean(element.getAttribute('title')) || clean(element.getAttribute('placeholder')), limit);
}

function secretField(element) {
  return element.tagName === 'INPUT' && element.type === 'password';
}

function valueOf(element) {
  if (element.tagName === 'SELECT') return [...element.selectedOptions].map((option) => clean(option.label)).join(', ');
  if (element.tagName === 'INPUT' || element.tagName === 'TEXTAREA') {
    if (secretField(element)) return element.value ? '••••' : '';
    return element.type === 'checkbox' || element.type === 'radio' ? '' : element.value;
  }
  return element.isContentEditable ? textOf(element) : '';
}

function inViewport(element) {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
}

function cssPath(element) {
  const unique = (selector, root) => root.querySelectorAll(selector).length === 1;
  const root = element.getRootNode();
  const steps = [];
  for (let node = element; node && node.nodeType === Node.ELEMENT_NODE; node = node.parentElement) {
    const own = node.id ? `#${CSS.escape(node.id)}` : '';
    if (own && unique(own, root)) {
      steps.unshift(own);
      return steps.join(' > ');
    }
    for (const attribute of ['data-testid', 'name', 'aria-label']) {
      const value = node.getAttribute(attribute);
      const selector = value && `${node.localName}[${attribute}="${CSS.escape(value)}"]`;
      if (selector && !steps.length && unique(selector, root)) return selector;
    }
    const tag = CSS.escape(node.localName);
    const twins = node.parentElement ? [...node.parentElement.children].filter((other) => other.localName === node.localName) : [];
    steps.unshift(twins.length > 1 ? `${tag}:nth-of-type(${twins.indexOf(node) + 1})` : tag);
  }
  return steps.join(' > ');
}

function describe(element) {
  return {
    handle: handleOf(element),
    role: roleOf(element) || element.localName,
    name: nameOf(element, 80) || cut(textOf(element, 80), 80),
    tag: element.localName,
    selector: cssPath(element),
  };
}

function hindrance({ handle }) {
  const element = elementOf(handle);
  if (!element) return 'it went away';
  if (!visible(element)) return 'it is not visible';
  if (element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true') return 'it is not enabled';
  if (element.readOnly) return 'it is not editable';
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  const box = element.getBoundingClientRect();
  const top = element.getRootNode().elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (!top) return 'it is outside of the viewport';
  return element.contains(top) || top.contains(element) ? '' : `it is covered by ${cut(top.outerHTML.split('>')[0], 80)}>`;
}
