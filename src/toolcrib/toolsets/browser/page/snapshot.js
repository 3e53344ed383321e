// The page as an outline that a model reads: one line per thing, with a handle to act on it.

const LEAVES = new Set(['button', 'link', 'heading', 'option', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'checkbox', 'radio', 'switch', 'treeitem', 'img', 'textbox', 'searchbox', 'spinbutton', 'slider', 'combobox', 'listbox', 'progressbar', 'meter', 'separator', 'file', 'color', 'iframe', 'canvas', 'video', 'audio']);
const SKIPPED = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD', 'LINK', 'META', 'TITLE', 'BR', 'WBR', 'COL', 'COLGROUP', 'PARAM', 'SOURCE', 'TRACK']);
const SILENT = new Set(['', 'none', 'presentation', 'generic', 'row', 'rowgroup', 'cell', 'gridcell', 'columnheader', 'rowheader', 'listitem', 'paragraph', 'text', 'strong', 'emphasis']);
const ACTIVE = new Set(['button', 'link', 'option', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'checkbox', 'radio', 'switch', 'treeitem', 'textbox', 'searchbox', 'spinbutton', 'slider', 'combobox', 'listbox', 'file', 'color', 'iframe']);
const TEXT_LIMIT = 240;

class Outline {
  constructor(interactiveOnly) {
    this.lines = [];
    this.words = [];
    this.interactiveOnly = interactiveOnly;
  }

  flush(depth) {
    const text = clean(this.words.join(''));
    this.words = [];
    if (text && !this.interactiveOnly) this.lines.push({ depth, text: `- ${cut(text, TEXT_LIMIT)}` });
  }

  add(depth, text, parent = false) {
    this.flush(depth);
    this.lines.push({ depth, text, parent });
  }

  walk(node, depth) {
    if (node.nodeType === Node.TEXT_NODE) this.words.push(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName)) return;
    if (node.getAttribute('aria-hidden') === 'true') return;
    if (!node.checkVisibility({ visibilityProperty: true }) && getComputedStyle(node).display !== 'contents') return;
    const role = roleOf(node);
    if (node.tagName === 'TR' || role === 'row') return this.row(node, depth);
    if (LEAVES.has(role)) return this.leaf(node, role, depth);
    if (SILENT.has(role)) return this.transparent(node, depth);
    return this.group(node, role, depth);
  }

  transparent(node, depth) {
    const block = !INLINE.has(node.tagName);
    if (block) this.flush(depth);
    for (const child of childrenOf(node)) this.walk(child, depth);
    if (block) this.flush(depth);
  }

  group(node, role, depth) {
    this.flush(depth);
    const name = nameOf(node, 80);
    const start = this.lines.length;
    this.add(depth, `- ${role}${name ? ` ${JSON.stringify(name)}` : ''} [${handleOf(node)}]:`, true);
    for (const child of childrenOf(node)) this.walk(child, depth + 1);
    this.flush(depth + 1);
    if (this.lines.length === start + 1) {
      const label = this.lines[start].text;
      if (name) this.lines[start] = { depth, text: label.slice(0, -1) };
      else this.lines.pop();
    }
  }

  row(node, depth) {
    this.flush(depth);
    const cells = [...node.children].filter((cell) => cell.checkVisibility({ visibilityProperty: true }));
    const text = cells.map((cell) => cut(textOf(cell, 80), 80)).join(' | ');
    const active = [...node.querySelectorAll(INTERACTIVE)].filter((inner) => ACTIVE.has(roleOf(inner)));
    if (!this.interactiveOnly && text.replaceAll('|', '').trim()) {
      const links = active.map((inner) => `${roleOf(inner)} ${JSON.stringify(nameOf(inner, 40))} [${handleOf(inner)}]`).join(', ');
      this.lines.push({ depth, text: `- row: ${text}${links ? ` (${links})` : ''}` });
    } else {
      for (const inner of active) this.walk(inner, depth);
    }
    for (const nested of node.querySelectorAll('table')) if (nested.closest('tr') === node) this.walk(nested, depth + 1);
  }

  leaf(node, role, depth) {
    if (role === 'img' && !nameOf(node)) return;
    if (this.interactiveOnly && !ACTIVE.has(role)) return;
    const name = nameOf(node, 100);
    const parts = [`- ${role}`];
    if (name) parts.push(JSON.stringify(name));
    parts.push(`[${[handleOf(node), ...states(node, role)].join(' ')}]`);
    const value = role === 'combobox' || role === 'textbox' || role === 'searchbox' || role === 'spinbutton' || role === 'slider' ? cut(clean(valueOf(node)), 80) : '';
    this.add(depth, parts.join(' ') + (value ? `: ${value}` : ''));
    if (node.tagName === 'SELECT' || node.tagName === 'svg' || node.tagName === 'IFRAME') return;
    for (const inner of node.querySelectorAll?.(INTERACTIVE) || []) {
      const nearest = inner.parentElement.closest(INTERACTIVE);
      if (nearest === node && inner.tagName !== 'LABEL' && inner.checkVisibility()) this.walk(inner, depth + 1);
    }
  }
}

function states(node, role) {
  const list = [];
  if (role === 'heading') list.push(`level=${node.getAttribute('aria-level') || node.tagName.slice(1)}`);
  if (node.checked || node.getAttribute('aria-checked') === 'true') list.push('checked');
  if (node.disabled || node.getAttribute('aria-disabled') === 'true') list.push('disabled');
  if (node.required || node.getAttribute('aria-required') === 'true') list.push('required');
  if (node.getAttribute('aria-selected') === 'true' || (node.tagName === 'OPTION' && node.selected)) list.push('selected');
  if (node.getAttribute('aria-pressed') === 'true') list.push('pressed');
  const expanded = node.getAttribute('aria-expanded');
  if (expanded) list.push(expanded === 'true' ? 'expanded' : 'collapsed');
  if (node.tagName === 'SUMMARY') list.push(node.parentElement.open ? 'expanded' : 'collapsed');
  if (document.activeElement === node && node !== document.body) list.push('focused');
  return list;
}

function snapshot({ root, characters, page, interactiveOnly }) {
  const outline = new Outline(interactiveOnly);
  const top = root ? elementOf(root) : document.body;
  if (top) {
    outline.walk(top, 0);
    outline.flush(0);
  }
  const pages = paged(outline.lines, characters);
  const index = Math.min(Math.max(page, 1), pages.length) - 1;
  const shown = pages[index] || { from: 0, to: 0, path: [] };
  const lines = outline.lines.slice(shown.from, shown.to).map(({ depth, text }) => '  '.repeat(Math.min(depth, 12)) + text);
  return { text: [...shown.path, ...lines].join('\n'), page: index + 1, pages: Math.max(pages.length, 1), lines: outline.lines.length };
}

function paged(lines, characters) {
  const pages = [];
  let start = 0;
  let size = 0;
  let path = [];
  let ancestors = [];
  lines.forEach(({ depth, text, parent }, index) => {
    const length = text.length + 2 * Math.min(depth, 12) + 1;
    if (size + length > characters && index > start) {
      pages.push({ from: start, to: index, path });
      ancestors = ancestors.filter((one) => one.depth < depth);
      path = ancestors.map((one) => `${'  '.repeat(Math.min(one.depth, 12))}${one.text} (continued)`);
      size = path.reduce((sum, line) => sum + line.length + 1, 0);
      start = index;
    }
    size += length;
    ancestors = ancestors.filter((one) => one.depth < depth);
    if (parent) ancestors.push({ depth, text });
  });
  if (start < lines.length) pages.push({ from: start, to: lines.length, path });
  return pages;
}

function inView({ limit }) {
  return deepAll(INTERACTIVE).filter((node) => node.tagName !== 'LABEL' && visible(node) && inViewport(node)).slice(0, limit).map((node) => {
    const box = node.getBoundingClientRect();
    return { handle: handleOf(node), role: roleOf(node) || node.localName, name: nameOf(node, 60), box: [box.x, box.y, box.width, box.height].map(Math.round) };
  });
}
