'use strict';
// The theme is set before the page is drawn.
const stored = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* private window: the choice lasts until the page is closed */ } },
};
document.documentElement.classList.add('script');
if (stored.get('theme')) document.documentElement.dataset.theme = stored.get('theme');

document.addEventListener('DOMContentLoaded', () => {
  for (const id of ['menu', 'theme']) document.getElementById(id).hidden = false;
  startTheme();
  startContents();
  startTabs();
  startCopy();
  showOwnAddress();
  startTry();
});

function startTheme() {
  document.getElementById('theme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    stored.set('theme', root.dataset.theme);
  });
}

// The menu of a phone, the filter, and the mark of the section that is on the screen.
function startContents() {
  const menu = document.getElementById('menu');
  const contents = document.getElementById('contents');
  const open = (now) => {
    contents.classList.toggle('open', now);
    menu.setAttribute('aria-expanded', String(now));
  };
  menu.addEventListener('click', () => open(!contents.classList.contains('open')));
  contents.addEventListener('click', (event) => { if (event.target.closest('a')) open(false); });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && contents.classList.contains('open')) { open(false); menu.focus(); }
  });

  const filter = document.getElementById('filter');
  filter.parentElement.hidden = false;
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().trim();
    for (const item of contents.querySelectorAll('.section li')) {
      const link = item.firstElementChild;
      const text = `${link.textContent} ${link.hash} ${document.getElementById(link.hash.slice(1))?.dataset.path ?? ''}`;
      item.hidden = words !== '' && !text.toLowerCase().includes(words);
    }
    for (const section of contents.querySelectorAll('.section')) section.hidden = !section.querySelector('li:not([hidden])');
  });

  const links = new Map();
  for (const link of contents.querySelectorAll('a')) links.set(link.hash.slice(1), link);
  const targets = [...links.keys()].map((id) => document.getElementById(id)).filter((target) => target && target.tagName !== 'MAIN');
  let current = null;
  const mark = () => {
    const line = 160;
    let found = null;
    for (const target of targets) {
      if (target.getBoundingClientRect().top <= line) found = target;
      else break;
    }
    const link = links.get(found ? found.id : 'top');
    if (link === current) return;
    current?.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    current = link;
    const box = link.getBoundingClientRect();
    const frame = contents.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) contents.scrollTop += box.top - frame.top - frame.height / 3;
  };
  let waiting = false;
  addEventListener('scroll', () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; mark(); });
  }, { passive: true });
  mark();
}

// One choice of a language holds for the whole page.
function startTabs() {
  const lists = [];
  const choose = (language) => {
    for (const { buttons, panels } of lists) {
      for (const button of buttons) {
        const chosen = button.dataset.language === language;
        button.setAttribute('aria-selected', String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      }
      for (const panel of panels) panel.hidden = panel.dataset.language !== language;
    }
    stored.set('language', language);
  };
  for (const tabs of document.querySelectorAll('[data-tabs]')) {
    const panels = [...tabs.querySelectorAll('.sample')];
    const list = document.createElement('div');
    list.className = 'tablist';
    list.setAttribute('role', 'tablist');
    const buttons = panels.map((panel) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.id = `${panel.id}-tab`;
      button.dataset.language = panel.dataset.language;
      button.setAttribute('role', 'tab');
      button.setAttribute('aria-controls', panel.id);
      button.textContent = panel.querySelector('figcaption').textContent;
      button.addEventListener('click', () => {
        const before = button.getBoundingClientRect().top;
        choose(button.dataset.language);
        scrollBy({ top: button.getBoundingClientRect().top - before, behavior: 'instant' });
      });
      panel.setAttribute('role', 'tabpanel');
      panel.setAttribute('aria-labelledby', button.id);
      list.append(button);
      return button;
    });
    list.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
      next.focus();
      next.click();
    });
    tabs.classList.add('on');
    tabs.prepend(list);
    lists.push({ buttons, panels });
  }
  const known = lists[0].buttons.map((button) => button.dataset.language);
  choose(known.includes(stored.get('language')) ? stored.get('language') : known[0]);
}

function startCopy() {
  if (!navigator.clipboard) return; // only pages with https or on this machine may copy
  for (const block of document.querySelectorAll('pre')) addCopy(block);
}

function addCopy(block) {
  if (!navigator.clipboard) return;
  const frame = document.createElement('div');
  frame.className = 'copies';
  block.replaceWith(frame);
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = document.body.dataset.copy;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = document.body.dataset.copied;
    setTimeout(() => { button.textContent = document.body.dataset.copy; }, 1500);
  });
  frame.append(block, button);
}

// root is the address of the service that serves this page.
const root = location.origin + location.pathname.replace(/\/docs\/?$/, '');

// The examples name the address of this service in place of the one in the document.
function showOwnAddress() {
  for (const code of document.querySelectorAll('#setup-curl code, .example code')) {
    const nodes = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) nodes.currentNode.data = nodes.currentNode.data.replaceAll('http://127.0.0.1:8080', root);
  }
}

// The key is a variable of this page and nothing else: it is never stored.
let key = '';

function startTry() {
  for (const panel of document.querySelectorAll('[data-try]')) {
    panel.hidden = false;
    panel.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      send(panel);
    });
    panel.addEventListener('input', (event) => {
      const { target } = event;
      if ('key' in target.dataset) {
        key = target.value.trim();
        for (const other of document.querySelectorAll('[data-key]')) if (other !== target) other.value = target.value;
      }
      if (target.dataset.in === 'path') fill(target.dataset.name, target.value);
    });
  }
}

// fill puts an id into all forms that ask for it.
function fill(name, value) {
  for (const input of document.querySelectorAll(`[data-in="path"][data-name="${name}"]`)) if (input.value !== value) input.value = value;
}

function requestOf(panel) {
  const { method, path } = panel.closest('.op').dataset;
  const query = new URLSearchParams();
  const headers = {};
  let target = path;
  for (const input of panel.querySelectorAll('[data-in]')) {
    const value = input.value.trim();
    if (value === '') continue;
    if (input.dataset.in === 'path') target = target.replace(`{${input.dataset.name}}`, encodeURIComponent(value));
    if (input.dataset.in === 'query') query.append(input.dataset.name, value);
    if (input.dataset.in === 'header') headers[input.dataset.name] = value;
  }
  if (panel.querySelector('[data-key]') && key) headers.Authorization = `Bearer ${key}`;
  const body = panel.querySelector('[data-body]')?.value;
  if (body) headers['Content-Type'] = 'application/json';
  const search = query.toString();
  return [`${root}${target}${search && `?${search}`}`, { method, headers, body, credentials: 'omit', redirect: 'error', cache: 'no-store' }];
}

async function send(panel) {
  const result = panel.querySelector('.result');
  const say = (text) => {
    const line = document.createElement('p');
    line.className = 'line';
    line.textContent = text;
    result.append(line);
  };
  result.replaceChildren();
  say(document.body.dataset.sending);
  let answer;
  let content;
  let text; // of JSON
  const began = performance.now();
  try {
    answer = await fetch(...requestOf(panel));
    content = await answer.blob();
    if (content.type.startsWith('application/json')) text = await content.text();
  } catch (problem) {
    result.replaceChildren();
    say(`${document.body.dataset.failed}: ${problem.message}`);
    return;
  }
  result.replaceChildren();
  say(`${answer.status} ${answer.statusText} · ${Math.round(performance.now() - began)} ms`);
  const shown = document.createElement('pre');
  shown.tabIndex = 0;
  shown.textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
  if (text !== undefined) {
    try {
      const value = JSON.parse(text);
      shown.textContent += `\n\n${JSON.stringify(value, null, 2)}`;
      remember(panel.closest('.op').id, value);
    } catch {
      shown.textContent += `\n\n${text}`;
    }
  } else if (content.size > 0) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(content);
    link.download = (/filename="([^"]+)"/.exec(answer.headers.get('Content-Disposition') ?? '') ?? [])[1] ?? 'answer';
    link.textContent = `${link.download} (${content.size} bytes)`;
    result.append(link);
  }
  result.append(shown);
  addCopy(shown);
}

// remember puts the ids of a new resource into the other forms.
function remember(operation, value) {
  if (operation === 'createInvoice' && value.data) {
    fill('invoice_id', value.data.id);
    fill('document_id', value.data.fiscal_document_id);
  }
  if (operation === 'createWebhookEndpoint' && value.data) fill('endpoint_id', value.data.id);
}
