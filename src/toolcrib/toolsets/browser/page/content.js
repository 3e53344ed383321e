// Reading a page: text, Markdown, tables, links, forms, structured data.

function reading(read) {
  // A reader gets the element that is meant, or null for the whole page; its answer says what was matched.
  return ({ target, ...question }) => {
    const match = target ? resolve({ target, purpose: 'any' }) : null;
    if (match && !match.found) return { match };
    return { match, ...read(match && elementOf(match.handle), question) };
  };
}

const text = reading((element, { offset, limit }) => {
  const root = element || document.body;
  const whole = root ? readable(root) : '';
  return { text: whole.slice(offset, offset + limit), length: whole.length, title: document.title };
});

function readable(root) {
  const own = (root.innerText ?? root.textContent ?? '').replace(/\n{3,}/g, '\n\n').trim();
  const hosts = root.shadowRoot ? [root] : shadowHosts(root);
  return [own, ...hosts.map((host) => textOf(host, 100000)).filter((inner) => inner && !own.includes(inner))].join('\n').trim();
}

const html = reading((element) => ({ html: (element || document.documentElement).outerHTML }));

const markdown = reading((element) => {
  const root = element || document.body;
  return { markdown: root ? clip(blockOf(root)) : '' };
});

const clip = (markdownText) => markdownText.replace(/[ \t]+\n/g, '\n').replace(/\n{3,}/g, '\n\n').trim();

function blockOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/\s+/g, ' ');
  if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName) && node.tagName !== 'BR') return '';
  if (node.tagName !== 'BR' && !node.checkVisibility({ visibilityProperty: true }) && getComputedStyle(node).display !== 'contents') return '';
  const inner = () => [...childrenOf(node)].map(blockOf).join('');
  const line = () => clean(inner());
  switch (node.tagName) {
    case 'H1': case 'H2': case 'H3': case 'H4': case 'H5': case 'H6':
      return `\n\n${'#'.repeat(Number(node.tagName[1]))} ${line()}\n\n`;
    case 'BR': return '\n';
    case 'HR': return '\n\n---\n\n';
    case 'A': return node.href && line() ? `[${line()}](${node.href})` : inner();
    case 'IMG': return node.alt || node.src ? `![${clean(node.alt)}](${node.src})` : '';
    case 'STRONG': case 'B': return line() ? `**${line()}**` : '';
    case 'EM': case 'I': return line() ? `*${line()}*` : '';
    case 'CODE': return node.closest('pre') ? node.textContent : `\`${node.textContent}\``;
    case 'PRE': return `\n\n\`\`\`\n${node.textContent.replace(/\n$/, '')}\n\`\`\`\n\n`;
    case 'BLOCKQUOTE': return `\n\n${clip(inner()).split('\n').map((row) => `> ${row}`).join('\n')}\n\n`;
    case 'UL': case 'OL': return `\n\n${listOf(node)}\n\n`;
    case 'TABLE': return `\n\n${tableMarkdown(node)}\n\n`;
    case 'SELECT': return valueOf(node);
    case 'INPUT': case 'TEXTAREA': return '';
    default: return INLINE.has(node.tagName) ? inner() : `\n\n${inner()}\n\n`;
  }
}

function listOf(node) {
  const items = [...node.children].filter((child) => child.tagName === 'LI');
  return items.map((item, index) => {
    const mark = node.tagName === 'OL' ? `${index + 1}.` : '-';
    const body = clip([...childrenOf(item)].map(blockOf).join('')).replace(/\n{2,}/g, '\n').split('\n');
    return body.map((row, at) => (at ? `${' '.repeat(mark.length + 1)}${row}` : `${mark} ${row}`)).join('\n');
  }).join('\n');
}

function grid(node) {
  // Cells that span rows or columns are repeated, so that every row has every column.
  const rows = [...node.rows].filter((row) => row.closest('table') === node);
  const cells = rows.map(() => []);
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (cells[y][x] !== undefined) x += 1;
      const content = textOf(cell, 2000);
      for (let dy = 0; dy < Math.min(cell.rowSpan || 1, rows.length - y); dy += 1) {
        for (let dx = 0; dx < Math.min(cell.colSpan, 100); dx += 1) cells[y + dy][x + dx] = content;
      }
      x += cell.colSpan;
    }
  });
  const headed = rows.length > 0 && (rows[0].closest('thead') || [...rows[0].cells].every((cell) => cell.tagName === 'TH'));
  return { headers: headed ? cells[0] : [], rows: headed ? cells.slice(1) : cells };
}

function tableMarkdown(node) {
  const { headers, rows } = grid(node);
  const width = Math.max(headers.length, ...rows.map((row) => row.length), 1);
  const line = (row) => `| ${Array.from({ length: width }, (_, at) => (row[at] || '').replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(headers), `|${' --- |'.repeat(width)}`, ...rows.map(line)].join('\n');
}

const table = reading((root) => {
  const node = root ? (root.tagName === 'TABLE' ? root : root.querySelector('table') || root.closest('table')) : deepAll('table').filter(visible).sort((one, two) => two.rows.length - one.rows.length)[0];
  if (!node) return { table: null };
  const answer = { table: { caption: clean(node.caption?.textContent), ...grid(node) } };
  if (!root) answer.match = { found: true, visible: true, by: 'largest table', matches: deepAll('table').length, ...describe(node) };
  return answer;
});

const links = reading((element, { contains, limit }) => {
  const wanted = plain(contains);
  const seen = new Set();
  const list = [];
  for (const link of deepAll('a[href], area[href]', element || document)) {
    const item = { text: nameOf(link, 200), url: link.href, handle: '', external: link.origin !== location.origin };
    const key = `${item.url} ${item.text}`;
    if (seen.has(key) || (wanted && !plain(`${item.text} ${item.url}`).includes(wanted))) continue;
    seen.add(key);
    if (list.length < limit) list.push({ ...item, handle: handleOf(link) });
  }
  return { links: list, total: seen.size };
});

function info({ handle }) {
  const node = elementOf(handle);
  const box = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  return {
    ...describe(node),
    text: textOf(node, 500),
    value: valueOf(node),
    attributes: Object.fromEntries([...node.attributes].map(({ name, value }) => [name, secretField(node) && name === 'value' ? '••••' : cut(value, 300)])),
    box: { x: Math.round(box.x), y: Math.round(box.y), width: Math.round(box.width), height: Math.round(box.height) },
    visible: visible(node),
    in_viewport: inViewport(node),
    enabled: !node.matches(':disabled') && node.getAttribute('aria-disabled') !== 'true',
    editable: node.matches('input, textarea, select, [contenteditable]') && !node.readOnly && !node.disabled,
    checked: typeof node.checked === 'boolean' && /checkbox|radio/.test(node.type) ? node.checked : null,
    focused: document.activeElement === node,
    style: { color: style.color, background: style.backgroundColor, font_size: style.fontSize, display: style.display, cursor: style.cursor },
    children: node.children.length,
  };
}

function fieldOf(node) {
  const box = node.type === 'checkbox' || node.type === 'radio';
  const field = { handle: handleOf(node), label: labelOf(node) || clean(node.getAttribute('aria-label')), name: node.name || '', type: node.tagName === 'INPUT' ? node.type : node.localName, value: valueOf(node), required: Boolean(node.required) };
  if (node.placeholder) field.placeholder = node.placeholder;
  if (box) Object.assign(field, { checked: node.checked, value: node.value });
  if (node.tagName === 'SELECT') field.options = [...node.options].slice(0, 200).map((option) => clean(option.label));
  if (node.disabled) field.disabled = true;
  if (node.willValidate && !node.validity.valid) field.problem = node.validationMessage;
  return field;
}

const forms = reading((element) => {
  const root = element || document;
  const own = element?.closest('form');
  const all = own ? [own] : deepAll('form', root);
  const loose = own ? [] : deepAll(CANDIDATES.field, root).filter((node) => !node.form && !node.closest('form') && visible(node));
  const list = all.map((form) => ({
    handle: handleOf(form), name: nameOf(form) || form.getAttribute('name') || form.id || '', action: form.action?.toString() || '', method: form.method || 'get',
    fields: [...form.elements].filter((node) => node.matches(CANDIDATES.field)).map(fieldOf),
    buttons: [...form.elements].filter((node) => node.matches('button, input[type=submit], input[type=image], input[type=reset]')).map((node) => ({ handle: handleOf(node), name: nameOf(node), type: node.type })),
  }));
  if (loose.length) list.push({ handle: '', name: '(fields outside any form)', action: '', method: '', fields: loose.map(fieldOf), buttons: [] });
  return { forms: list };
});

const submitter = reading((element) => {
  // The button a person would press to send the form, so that the form's own validation and handlers run.
  const start = element || document.activeElement;
  const form = start?.closest?.('form') || start?.form || start?.querySelector?.('form') || deepAll('form').filter(visible)[0];
  if (!form) return { form: null };
  const buttons = [...form.elements].filter((node) => node.matches('button:not([type=button]):not([type=reset]), input[type=submit], input[type=image]') && visible(node) && !node.disabled);
  return { form: describe(form), button: buttons.length ? describe(buttons[0]) : null, problems: [...form.elements].filter((node) => node.willValidate && !node.validity.valid).map((node) => `${nameOf(node) || node.name}: ${node.validationMessage}`) };
});

function metadata() {
  const metas = {};
  for (const meta of document.querySelectorAll('meta[name], meta[property]')) {
    metas[meta.getAttribute('name') || meta.getAttribute('property')] = meta.content;
  }
  return {
    title: document.title, url: location.href, language: document.documentElement.lang || '', charset: document.characterSet,
    description: metas.description || metas['og:description'] || '', canonical: document.querySelector('link[rel=canonical]')?.href || '',
    icons: [...document.querySelectorAll('link[rel~=icon]')].map((link) => link.href), meta: metas, json_ld: jsonLd(),
    feeds: [...document.querySelectorAll('link[type="application/rss+xml"], link[type="application/atom+xml"]')].map((link) => link.href),
  };
}

function pageState() {
  const root = document.scrollingElement || document.documentElement;
  const count = (selector) => deepAll(selector).filter(visible).length;
  const focus = document.activeElement;
  return {
    url: location.href, title: document.title, ready: document.readyState,
    scroll: { x: Math.round(scrollX), y: Math.round(scrollY), height: root.scrollHeight, viewport: innerHeight, at_end: scrollY + innerHeight >= root.scrollHeight - 2 },
    viewport: { width: innerWidth, height: innerHeight },
    counts: { links: count('a[href]'), buttons: count('button, [role=button], input[type=submit], input[type=button]'), fields: count(CANDIDATES.field), forms: count('form'), images: count('img'), frames: deepAll('iframe').length },
    headings: deepAll('h1, h2, h3').filter(visible).slice(0, 20).map((heading) => textOf(heading, 100)),
    focused: focus && focus !== document.body ? describe(focus) : null,
    dialogs: deepAll('dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]').filter(visible).map((dialog) => brief(dialog)),
  };
}

function scrolled(own) {
  return { x: Math.round(own.scrollLeft), y: Math.round(own.scrollTop), height: own.scrollHeight, viewport: own.clientHeight, at_end: own.scrollTop + own.clientHeight >= own.scrollHeight - 2 };
}

async function scroll({ handle, direction, amount }) {
  const node = handle ? elementOf(handle) : null;
  const scrollable = node && node.scrollHeight > node.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(node).overflowY);
  const own = scrollable ? node : document.scrollingElement || document.documentElement;
  const before = scrolled(own);
  const step = amount || Math.round(own.clientHeight * 0.9);
  if (node && !scrollable) node.scrollIntoView({ block: 'center', behavior: 'instant' });
  else if (direction === 'top') own.scrollTo({ top: 0, behavior: 'instant' });
  else if (direction === 'bottom') own.scrollTo({ top: own.scrollHeight, behavior: 'instant' });
  else own.scrollBy({ left: direction === 'left' ? -step : direction === 'right' ? step : 0, top: direction === 'up' ? -step : direction === 'down' ? step : 0, behavior: 'instant' });
  await new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 0)); setTimeout(done, 100); });
  return { before, after: scrolled(own) };
}

function radio({ name, value }) {
  const same = (one, two) => clean(one).toLowerCase() === clean(two).toLowerCase();
  for (const button of deepAll('input[type=radio]')) {
    const legend = button.closest('fieldset')?.querySelector('legend')?.textContent;
    if ((same(button.name, name) || same(legend, name)) && (same(button.value, value) || same(labelOf(button), value))) return handleOf(button);
  }
  return '';
}
