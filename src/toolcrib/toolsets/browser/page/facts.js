// What a page says about its subject, in every way pages say it: the raw material of structured extraction.

function jsonLd() {
  const found = [];
  for (const script of document.querySelectorAll('script[type="application/ld+json"]')) {
    try {
      const data = JSON.parse(script.textContent);
      for (const item of Array.isArray(data) ? data : [data]) found.push(...(Array.isArray(item['@graph']) ? item['@graph'] : [item]));
    } catch { /* a page's broken JSON-LD is the same as none */ }
  }
  return found;
}

function microdata() {
  return deepAll('[itemscope]').filter((node) => !node.hasAttribute('itemprop')).map(itemOf);
}

function itemOf(node) {
  const item = { '@type': (node.getAttribute('itemtype') || '').split('/').pop() };
  for (const property of node.querySelectorAll('[itemprop]')) {
    if (property.parentElement.closest('[itemscope]') !== node) continue;
    const value = property.hasAttribute('itemscope') ? itemOf(property) : property.getAttribute('content') ?? property.getAttribute('datetime') ?? property.href ?? property.src ?? property.getAttribute('value') ?? textOf(property, 2000);
    for (const name of property.getAttribute('itemprop').split(/\s+/)) item[name] = name in item ? [].concat(item[name], value) : value;
  }
  return item;
}

function labelled(root) {
  const pairs = [];
  const add = (label, value) => { if (clean(label) && clean(value)) pairs.push([clean(label).replace(/\s*[:：]$/, ''), clean(value)]); };
  for (const term of root.querySelectorAll('dt')) {
    const answer = term.nextElementSibling;
    if (answer?.tagName === 'DD') add(textOf(term), textOf(answer, 2000));
  }
  for (const row of root.querySelectorAll('tr')) {
    if (row.cells.length === 2 && (row.cells[0].tagName === 'TH' || row.closest('table').rows[0].cells.length === 2)) add(textOf(row.cells[0]), textOf(row.cells[1], 2000));
  }
  for (const field of root.querySelectorAll(CANDIDATES.field)) if (!secretField(field)) add(labelOf(field), field.type === 'checkbox' ? String(field.checked) : valueOf(field));
  for (const node of root.querySelectorAll('li, p, div, span, b, strong, td')) {
    if (node.children.length > 2 || node.textContent.length > 300) continue;
    const match = /^([^:：]{2,40})[:：]\s*(\S.*)$/s.exec(clean(node.textContent));
    if (match) add(match[1], match[2]);
    else if (/[:：]$/.test(clean(node.textContent)) && node.nextSibling) add(node.textContent, node.nextSibling.textContent);
  }
  return pairs;
}

function marked(root) {
  // Class names, ids, data attributes and test ids often say what a piece of text is.
  const pairs = [];
  for (const node of root.querySelectorAll('[class], [id], [data-field], [data-testid]')) {
    if (node.children.length > 3 || node.matches('script, style, form, ul, ol, table')) continue;
    const value = textOf(node, 500);
    if (!value) continue;
    for (const name of [...node.classList, node.id, node.dataset.field, node.dataset.testid]) if (name) pairs.push([name, value]);
  }
  return pairs.slice(0, 2000);
}

function repeated(root) {
  // Groups of siblings that look alike are usually a list of records.
  const groups = [];
  const parents = new Set();
  for (const node of root.querySelectorAll('li, article, tr, section, div')) if (node.parentElement) parents.add(node.parentElement);
  for (const parent of parents) {
    const byShape = new Map();
    for (const child of parent.children) {
      const key = `${child.tagName}.${child.classList[0] || ''}`;
      if (!byShape.has(key)) byShape.set(key, []);
      byShape.get(key).push(child);
    }
    for (const items of byShape.values()) {
      if (items.length < 2 || items[0].tagName === 'TR' || !items[0].querySelector('[class], [data-field], a[href], h1, h2, h3, h4')) continue;
      groups.push(items.slice(0, 500).map((item) => ({ pairs: [...marked(item), ...labelled(item), ...natural(item)] })));
    }
  }
  return groups.sort((one, two) => two.length - one.length).slice(0, 5);
}

function natural(root) {
  const pairs = [];
  const heading = root.querySelector('h1, h2, h3, h4, h5, h6');
  const link = root.querySelector('a[href]');
  const image = root.querySelector('img[src]');
  const time = root.querySelector('time');
  if (heading) pairs.push(['title', textOf(heading)], ['name', textOf(heading)], ['heading', textOf(heading)]);
  if (link) pairs.push(['url', link.href], ['link', link.href], ['title', textOf(link)]);
  if (image) pairs.push(['image', image.src]);
  if (time) pairs.push(['date', time.dateTime || textOf(time)]);
  return pairs;
}

function selected({ root, selectors }) {
  const found = {};
  for (const [field, selector] of Object.entries(selectors)) {
    const [, css, attribute] = /^(.*?)(?:@([\w-]+))?$/s.exec(selector);
    let nodes;
    try { nodes = css ? deepAll(css, root) : [root]; } catch { found[field] = { invalid: selector }; continue; }
    const read = (node) => (attribute ? node[attribute] && typeof node[attribute] === 'string' ? node[attribute] : node.getAttribute(attribute) : node.matches('input, select, textarea') ? valueOf(node) : textOf(node, 5000));
    found[field] = { values: nodes.map(read) };
  }
  return found;
}

const facts = reading((element, { selectors, items }) => {
  const root = element || document;
  const block = element || document.body;
  let records = null;
  if (items) {
    try { records = deepAll(items, root).map((node) => ({ selected: selected({ root: node, selectors }), pairs: [...marked(node), ...labelled(node), ...natural(node)] })); } catch { records = { invalid: items }; }
  }
  const metas = Object.fromEntries([...document.querySelectorAll('meta[name], meta[property]')].map((meta) => [(meta.getAttribute('name') || meta.getAttribute('property')).replace(/^(og|twitter|product|article):/, ''), meta.content]));
  return {
    selected: selected({ root, selectors: items ? {} : selectors }), records,
    json_ld: element ? [] : jsonLd(), microdata: microdata().filter(Boolean),
    tables: deepAll('table', root).slice(0, 20).map(grid), pairs: labelled(block), marked: marked(block), natural: natural(block), groups: repeated(block),
    meta: metas, title: document.title, url: location.href,
  };
});

const CAPTCHAS = [
  ['recaptcha', '.g-recaptcha, iframe[src*="recaptcha"], #recaptcha', 'textarea[name="g-recaptcha-response"]'],
  ['hcaptcha', '.h-captcha, iframe[src*="hcaptcha.com"]', 'textarea[name="h-captcha-response"]'],
  ['turnstile', '.cf-turnstile, iframe[src*="challenges.cloudflare.com"]', 'input[name="cf-turnstile-response"]'],
  ['geetest', '.geetest_holder, .geetest_captcha', 'input[name="geetest_validate"]'],
  ['image', 'img[src*="captcha" i], img[alt*="captcha" i], img[id*="captcha" i], canvas[id*="captcha" i]', 'input[name*="captcha" i], input[id*="captcha" i]'],
];
const CHALLENGES = /verify (that )?you are (a )?human|are you a robot|i'?m not a robot|checking your browser|unusual traffic/i;

function captchas() {
  const found = [];
  for (const [kind, widget, answer] of CAPTCHAS) {
    const node = deepAll(widget).find((one) => visible(one) || one.querySelector?.('iframe')) || null;
    if (!node) continue;
    const field = deepAll(answer)[0] || null;
    found.push({ kind, handle: handleOf(node), site_key: node.dataset?.sitekey || '', answer: field ? handleOf(field) : '', solved: Boolean(field && field.value && kind !== 'image'), image: node.tagName === 'IMG' ? node.src : '' });
  }
  if (!found.length && document.body && document.body.innerText.length < 3000 && CHALLENGES.test(document.body.innerText)) {
    found.push({ kind: 'challenge', handle: handleOf(document.body), site_key: '', answer: '', solved: false, image: '' });
  }
  return found;
}

function answerCaptcha({ handle, answer }) {
  const field = elementOf(handle);
  field.value = answer;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.dispatchEvent(new Event('change', { bubbles: true }));
  const callback = field.closest('form')?.querySelector('[data-callback]')?.dataset.callback;
  if (callback && typeof window[callback] === 'function') window[callback](answer);
  return true;
}

function before({ handle }) {
  const node = elementOf(handle);
  return { value: secretField(node) ? valueOf(node) : node.isContentEditable ? textOf(node) : node.value ?? '', checked: typeof node.checked === 'boolean' ? node.checked : node.getAttribute('aria-checked') === 'true' };
}

function cloak({ handle }) {
  // A secret typed into a field that shows its text would be on every screenshot and in the video.
  const node = elementOf(handle);
  node.style.setProperty('-webkit-text-security', 'disc', 'important');
  return before({ handle });
}

function results() {
  // A hit is a link with a heading in or around it; a page without headings lists plain links to elsewhere.
  const headed = deepAll('h2, h3, h4').map((heading) => heading.closest('a[href]') || heading.querySelector('a[href]')).filter(Boolean);
  const bare = deepAll('main a[href], #results a[href], ol a[href], ul a[href]').filter((link) => link.origin !== location.origin);
  const hits = new Map();
  for (const link of headed.length ? headed : bare) {
    if (!/^https?:/.test(link.href) || hits.has(link.href)) continue;
    const title = textOf(link);
    const box = link.closest('li, article, .result, section') || link.parentElement;
    hits.set(link.href, { title, url: link.href, snippet: cut(clean(textOf(box, 600).replace(title, '')), 300) });
  }
  return [...hits.values()];
}
