// From a CSS selector, a handle or plain words to an element.

const INTERACTIVE = 'a[href], area[href], button, input:not([type=hidden]), select, textarea, summary, option, label, [role=button], [role=link], [role=tab], [role=menuitem], [role=menuitemcheckbox], [role=menuitemradio], [role=option], [role=checkbox], [role=radio], [role=switch], [role=combobox], [role=textbox], [role=searchbox], [role=slider], [role=spinbutton], [role=treeitem], [onclick], [contenteditable=""], [contenteditable=true], [tabindex]:not([tabindex="-1"])';
const TEXT_FIELDS = 'input:not([type=hidden]):not([type=button]):not([type=submit]):not([type=reset]):not([type=image]):not([type=checkbox]):not([type=radio]):not([type=file]), textarea, [contenteditable=""], [contenteditable=true], [role=textbox], [role=searchbox], [role=combobox]:not(select), [role=spinbutton]';
const CANDIDATES = {
  click: INTERACTIVE,
  fill: TEXT_FIELDS,
  select: 'select, [role=listbox], [role=combobox]',
  check: 'input[type=checkbox], input[type=radio], [role=checkbox], [role=radio], [role=switch]',
  upload: 'input[type=file]',
  field: 'input:not([type=hidden]):not([type=button]):not([type=submit]):not([type=reset]):not([type=image]), select, textarea, [contenteditable=""], [contenteditable=true], [role=textbox], [role=combobox], [role=checkbox], [role=switch]',
  any: `${INTERACTIVE}, h1, h2, h3, h4, h5, h6, img, table, form, iframe, fieldset, details, dialog, [role], [aria-label], canvas, video, svg`,
};
const ROLE_WORDS = {
  button: ['button'], link: ['link'], field: ['textbox', 'searchbox', 'combobox', 'spinbutton'], input: ['textbox', 'searchbox', 'spinbutton'],
  textbox: ['textbox', 'searchbox'], box: ['textbox', 'searchbox', 'checkbox', 'combobox'], checkbox: ['checkbox', 'switch'], radio: ['radio'],
  dropdown: ['combobox', 'listbox'], list: ['list', 'listbox'], menu: ['combobox', 'menu'], tab: ['tab'], image: ['img'], picture: ['img'],
  heading: ['heading'], option: ['option'], table: ['table'], form: ['form'], icon: ['button', 'link', 'img'],
};
const FILLERS = new Set(['the', 'a', 'an', 'on', 'to', 'of', 'in', 'please', 'click', 'press', 'open', 'go', 'visit', 'show', 'me', 'page', 'labelled', 'labeled', 'called', 'named', 'that', 'says', 'with', 'for', 'my', 'your', 'our', 'at', 'is', 'and', 'follow', 'see', 'view', 'take', 'navigate', 'select', 'choose']);
const ACCEPTED = 0.6;
const EXACT = 0.95;

const plain = (text) => clean((text || '').normalize('NFKD').replace(/[\u0300-\u036f]/g, '').replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' '));
const tokens = (text) => plain(text).split(' ').filter(Boolean);

function deepAll(selector, root = document) {
  const found = [...root.querySelectorAll(selector)];
  for (const host of shadowHosts(root)) found.push(...deepAll(selector, host.shadowRoot));
  return found;
}

function shadowHosts(root) {
  const hosts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) if (node.shadowRoot) hosts.push(node);
  return hosts;
}

function cssMatches(selector) {
  try {
    const found = [...document.querySelectorAll(selector)];
    return found.length ? found : deepAll(selector);
  } catch {
    return null;
  }
}

function xpathMatches(expression) {
  try {
    const result = document.evaluate(expression, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
    return Array.from({ length: result.snapshotLength }, (_, index) => result.snapshotItem(index)).filter((node) => node.nodeType === Node.ELEMENT_NODE);
  } catch {
    return null;
  }
}

function alike(word, other) {
  if (word === other) return 1;
  const [short, long] = word.length < other.length ? [word, other] : [other, word];
  if (short.length >= 3 && long.startsWith(short)) return 0.85;
  return short.length >= 4 && long.length - short.length <= 1 && within(short, long) ? 0.8 : 0;
}

function within(short, long) {
  // One edit apart: a letter changed, added, or two neighbours swapped.
  let index = 0;
  while (index < short.length && short[index] === long[index]) index += 1;
  if (short.length === long.length) {
    return short.slice(index + 1) === long.slice(index + 1)
      || (short[index] === long[index + 1] && short[index + 1] === long[index] && short.slice(index + 2) === long.slice(index + 2));
  }
  return short.slice(index) === long.slice(index + 1);
}

function likeness(wanted, name) {
  if (!name || !wanted.text) return 0;
  if (name === wanted.text) return 1;
  const share = 0.9 + 0.1 * Math.min(1, wanted.text.length / name.length);
  const padded = ` ${name} `;
  if (name.startsWith(`${wanted.text} `)) return 0.92 * share;
  if (padded.includes(` ${wanted.text} `)) return 0.88 * share;
  const words = name.split(' ');
  // The other way round, for whole sentences: "take me to the shopping cart" names "Shopping cart".
  if (` ${wanted.text} `.includes(padded) && words.length > 1 && wanted.words.length >= words.length + 2) {
    return 0.65 + 0.15 * (name.length / wanted.text.length);
  }
  let sum = 0;
  let missed = 0;
  for (const word of wanted.words) {
    const best = Math.max(0, ...words.map((other) => alike(word, other)));
    if (!best) missed += 1;
    sum += best;
  }
  const covered = sum / wanted.words.length;
  return missed ? covered * 0.55 : covered * 0.8 * share;
}

function parse(query) {
  const all = tokens(query);
  const roles = new Set();
  const words = all.filter((word) => {
    if (ROLE_WORDS[word]) ROLE_WORDS[word].forEach((role) => roles.add(role));
    return !ROLE_WORDS[word] && !FILLERS.has(word);
  });
  const whole = { text: all.join(' '), words: all };
  const bare = words.length && words.length < all.length ? { text: words.join(' '), words } : null;
  return { whole, bare, roles };
}

function namesOf(element) {
  const names = [[plain(nameOf(element, 300)), 1]];
  const add = (text, weight) => text && names.push([plain(text), weight]);
  if (element.placeholder) add(element.placeholder, 0.99);
  add(element.getAttribute('title'), 0.96);
  add(element.getAttribute('name'), 0.95);
  add(element.id, 0.9);
  add(element.getAttribute('data-testid'), 0.9);
  if (element.tagName === 'INPUT' || element.tagName === 'SELECT') add(element.getAttribute('autocomplete'), 0.85);
  if (element.tagName === 'INPUT') add(element.type, 0.8);
  if (element.tagName === 'A') {
    add(textOf(element, 200), 0.98);
    try { add(decodeURIComponent(new URL(element.href).pathname.split('/').filter(Boolean).pop() || ''), 0.7); } catch { /* no address */ }
  }
  return names;
}

function score(element, wanted) {
  let best = 0;
  for (const [name, weight] of namesOf(element)) {
    best = Math.max(best, likeness(wanted.whole, name) * weight, wanted.bare ? likeness(wanted.bare, name) * 0.99 * weight : 0);
  }
  if (best && wanted.roles.size) best += wanted.roles.has(roleOf(element)) ? 0.05 : -0.08;
  if (best && !reachable(element)) best *= 0.5;
  if (best && element.disabled) best *= 0.97;
  return Math.min(best, 1);
}

function reachable(element) {
  // A styled check box or file field is hidden behind its label.
  return visible(element) || [...(element.labels || [])].some(visible);
}

function mayBe(element, wanted) {
  // A cheap look before the careful one: an element of exactly this name has all its words somewhere.
  if (element.hasAttribute('aria-labelledby')) return true;
  const attributes = ['aria-label', 'placeholder', 'title', 'name', 'id', 'alt', 'value', 'data-testid', 'autocomplete', 'type'];
  const labels = [...(element.labels || [])].map((label) => label.textContent);
  const said = [element.textContent.slice(0, 600), ...labels, ...attributes.map((name) => element.getAttribute(name) || '')].join(' ').toLowerCase();
  return (wanted.bare || wanted.whole).words.every((word) => said.includes(word));
}

function ranked(query, purpose, exactly = false) {
  const wanted = parse(query);
  const list = [];
  const seen = new Set();
  const consider = (element, rate) => {
    if (seen.has(element) || (exactly && !mayBe(element, wanted))) return;
    seen.add(element);
    const points = rate(element);
    if (points > 0.2) list.push({ element, points });
  };
  for (const element of deepAll(CANDIDATES[purpose])) consider(element, (one) => score(one, wanted));
  if (purpose === 'click' || purpose === 'any') {
    for (const element of textElements(wanted)) {
      const target = element.closest('a[href], button, label, summary, [role=button], [role=link], [role=tab], [role=menuitem], [role=option]') || element;
      consider(target, (one) => Math.min(0.97, likeness(wanted.whole, plain(textOf(one, 300)))) * (visible(one) ? 1 : 0.5) - 0.02);
    }
  }
  const order = list.map((entry, index) => ({ ...entry, index, near: inViewport(entry.element) ? 0.004 : 0 }));
  return order.sort((one, two) => two.points + two.near - one.points - one.near || one.index - two.index);
}

function textElements(wanted) {
  const found = new Set();
  const first = wanted.whole.words;
  const scan = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.data.length > 400 || !node.parentElement) continue;
      const text = plain(node.data);
      if (text && first.some((word) => text.includes(word))) found.add(node.parentElement);
    }
    for (const host of shadowHosts(root)) scan(host.shadowRoot);
  };
  if (document.body) scan(document.body);
  return [...found].filter((element) => !/^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|TITLE)$/.test(element.tagName));
}

function chosen(matches, by) {
  const shown = matches.filter(visible);
  const element = shown[0] || matches[0];
  return { element, by, matches: matches.length, visible: shown.length > 0 };
}

function look(target, purpose) {
  const text = target.trim();
  if (/^e\d+$/.test(text)) {
    const element = elementOf(text);
    return element ? chosen([element], 'handle') : { stale: true };
  }
  if (text.startsWith('css=')) return looked(cssMatches(text.slice(4)), 'css');
  if (text.startsWith('xpath=')) return looked(xpathMatches(text.slice(6)), 'xpath');
  if (/^\(?\/\//.test(text)) return looked(xpathMatches(text), 'xpath');
  if (text.startsWith('text=')) return byWords(text.slice(5), purpose, ACCEPTED);
  const matches = cssMatches(text);
  if (/[#.[\]>:=*+~]/.test(text)) {
    if (matches?.length) return chosen(matches, 'css');
    if (matches === null && /^[#.[]/.test(text)) return { invalid: true };
    if (/^[#.[]|\[[\w-]+[~|^$*]?=|>/.test(text)) return null;
    return byWords(text, purpose, ACCEPTED);
  }
  // A word such as "search" is a tag and a name: an element of exactly that name comes first.
  return byWords(text, purpose, EXACT) || (matches?.some(visible) ? chosen(matches, 'css') : null) || byWords(text, purpose, ACCEPTED);
}

function looked(matches, by) {
  if (matches === null) return { invalid: true };
  return matches.length ? chosen(matches, by) : null;
}

function byWords(text, purpose, least) {
  const list = ranked(text, purpose, least >= EXACT);
  const top = list[0];
  if (!top || top.points < least) return null;
  const equals = list.filter((entry) => entry.points >= top.points - 0.001);
  return { element: top.element, by: 'words', points: top.points, matches: equals.length, visible: visible(top.element), others: list.slice(1, 4) };
}

function resolve({ target, purpose }) {
  const found = look(target, purpose);
  if (found?.element && found.by === 'css') resolved.set(target, new WeakRef(found.element));
  if (!found || found.stale || found.invalid) return { found: false, stale: Boolean(found?.stale), invalid: Boolean(found?.invalid) };
  const answer = { found: true, by: found.by, matches: found.matches, visible: found.visible, reachable: found.visible || reachable(found.element), ...describe(found.element) };
  if (found.element.closest('a[target=_blank], area[target=_blank]')) answer.opens_tab = true;
  if (found.by === 'words') answer.score = Math.round(found.points * 100) / 100;
  if (found.others?.length && found.others[0].points >= ACCEPTED) {
    answer.others = found.others.filter((entry) => entry.points >= ACCEPTED).map((entry) => brief(entry.element));
  }
  return answer;
}

function brief(element) {
  return `${handleOf(element)} ${roleOf(element) || element.localName} ${JSON.stringify(nameOf(element, 60) || textOf(element, 60))}`;
}

function nearest({ target, purpose }) {
  const text = target.replace(/^(css|xpath|text)=/, '');
  const list = ranked(text, purpose).slice(0, 5).map((entry) => entry.element);
  const wider = list.length ? [] : ranked(text, 'any').slice(0, 5).map((entry) => entry.element);
  const rest = list.length + wider.length ? [] : deepAll(CANDIDATES[purpose]).filter(visible).slice(0, 5);
  return [...list, ...wider, ...rest].map(brief);
}

function candidates({ target, purpose, limit }) {
  return ranked(target, purpose).slice(0, limit).map(({ element, points }) => ({
    ...describe(element), score: Math.round(points * 100) / 100, visible: visible(element), href: element.href || '',
  }));
}

const resolved = new Map();

function element(target) {
  // A click may be under way while its selector is resolved: both must mean the same element.
  if (/^e\d+$/.test(target)) return elementOf(target);
  const before = resolved.get(target)?.deref();
  return before?.isConnected ? before : look(target, 'click')?.element ?? null;
}
