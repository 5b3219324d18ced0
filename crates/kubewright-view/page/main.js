// The page: its state is in the address, so that a link shows what its sender saw.

import { follow, get, takeToken, token } from './client.js';
import { Controls } from './controls.js';
import { byId, described, el, throttled, time } from './dom.js';
import { Model } from './model.js';
import { Reports } from './reports.js';
import { ObjectPanel } from './object.js';
import { Reconciles } from './reconciles.js';
import { Requests } from './requests.js';
import { Timeline } from './timeline.js';
import { Tree } from './tree.js';

const PAGE = 5000;
const PAGES = ['objects', 'reconciles', 'requests', 'controls'];
const model = new Model();
const reports = new Reports(get);
const state = { page: 'objects', object: null, tab: 'yaml', revision: null, search: '', states: '', filters: {}, reconciles: { controller: '', text: '', end: '' } };
let about = { live: false };
let now = null;

// The state as it stands behind the #, and back.
function read() {
  const found = new URLSearchParams(location.hash.slice(1));
  const [collection, key] = (found.get('object') ?? '').split('|');
  state.page = PAGES.includes(found.get('page')) ? found.get('page') : 'objects';
  state.object = key ? { collection, key } : null;
  state.tab = found.get('tab') === 'history' ? 'history' : 'yaml';
  state.revision = /^\d+$/.test(found.get('at') ?? '') ? Number(found.get('at')) : null;
  state.search = found.get('search') ?? '';
  state.states = found.get('states') ?? '';
  state.reconciles = { controller: found.get('controller') ?? '', text: found.get('key') ?? '', end: found.get('end') ?? '' };
  state.filters = Object.fromEntries(['who', 'verb', 'what', 'status'].map((name) => [name, found.get(name) ?? '']));
}

function written() {
  const fields = {
    page: state.page === 'objects' ? '' : state.page,
    object: state.object ? `${state.object.collection}|${state.object.key}` : '',
    tab: state.tab === 'yaml' ? '' : state.tab,
    at: state.revision ?? '',
    search: state.search,
    states: state.states,
    ...state.filters,
    controller: state.reconciles.controller,
    key: state.reconciles.text,
    end: state.reconciles.end,
  };
  return new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== '')).toString();
}

function go(changes) {
  const before = state.object && `${state.object.collection}|${state.object.key}`;
  if (changes.object) changes = { ...changes, object: { collection: changes.object.collection, key: changes.object.key } };
  Object.assign(state, changes);
  const after = state.object && `${state.object.collection}|${state.object.key}`;
  const text = `#${written()}`;
  if (text !== location.hash) history[before !== after || changes.page ? 'pushState' : 'replaceState'](null, '', text);
  render();
}

const isLive = () => state.revision === null;
const tree = new Tree((row) => go({ object: row }));
const panel = new ObjectPanel((changes) => go(changes));
panel.seen = (collection, key) => model.latest.get(`${collection}\n${key}`)?.revision;
const timeline = new Timeline(model, reports, (count, row) => {
  const changes = { revision: count >= model.rows.length && about.live ? null : count ? model.rows[count - 1].revision : model.through };
  go(row ? { ...changes, object: row } : changes);
});
const reconciles = new Reconciles(reports, (changes) => go(changes), (collection, key, revision) => {
  go({ page: 'objects', object: { collection, key }, tab: 'yaml', revision });
});
const requests = new Requests((changes) => go(changes));
const controls = new Controls();

// Whether an object is among those that are searched; the same function until others are.
let search = { of: null, keep: null };
function wanted() {
  const of = `${state.states}\n${state.search}`;
  if (search.of !== of) search = { of, keep: keeper() };
  return search.keep;
}

function keeper() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const states = state.states.split(',').filter(Boolean);
  const events = states.includes('events') || words.includes('event');
  const only = states.filter((one) => one !== 'events');
  return (row) => {
    if (row.kind === 'Event' && !events) return false;
    if (only.length && !only.includes(row.state)) return false;
    if (!words.length) return true;
    const text = `${row.kind} ${row.key} ${row.collection} ${row.message ?? ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function render() {
  for (const page of PAGES) {
    byId(page).hidden = state.page !== page;
    const tab = byId(`page-${page}`);
    tab.setAttribute('aria-selected', String(state.page === page));
    tab.tabIndex = state.page === page ? 0 : -1;
  }
  if (state.page === 'reconciles') reconciles.show(state.reconciles);
  else if (state.page === 'requests') attempt(() => requests.show(state.filters));
  else if (state.page === 'controls') attempt(() => controls.show());
  else renderObjects();
}

function renderObjects() {
  model.show(isLive() ? model.rows.length : model.countAt(state.revision));
  const box = byId('search');
  if (document.activeElement !== box) box.value = state.search;
  const only = state.states.replace(/,?events/, '') !== '';
  tree.show(model.changes(), wanted(), state.search !== '' || only);
  const empty = byId('tree-empty');
  empty.hidden = tree.visible.length > 0;
  empty.textContent = model.current.size ? 'No object is as you search.' : 'There are no objects at this moment.';
  renderChips();
  renderMoment();
  timeline.draw();
  const row = state.object && model.find(state.object.collection, state.object.key);
  tree.select(row ?? null);
  if (!state.object) {
    panel.empty();
    return;
  }
  if (!row && !model.known(state.object.collection, state.object.key)) {
    panel.absent(state.object.key);
    return;
  }
  panel.show({ ...state.object, tab: state.tab, revision: model.revision(), live: isLive() && about.live, owners: row ? ownersOf(row) : [] });
}

// Those above an object in the tree, the highest first.
function ownersOf(row) {
  const chain = [];
  for (let at = tree.forest.owner(row); at; at = tree.forest.owner(at)) chain.unshift(at);
  return chain;
}

function renderChips() {
  const { counts } = model;
  const chosen = new Set(state.states.split(',').filter(Boolean));
  const box = byId('states');
  if (!box.children.length) {
    for (const name of ['failing', 'progressing', 'ready', 'events']) {
      box.append(el('button', { class: 'chip', 'data-state': name, onclick: () => {
        const states = new Set(state.states.split(',').filter(Boolean));
        if (!states.delete(name)) states.add(name);
        go({ states: [...states].join(',') });
      } }, el('span', { class: `dot ${name === 'events' ? 'plain' : name}`, 'aria-hidden': 'true' }), `${name} `, el('b', {})));
    }
  }
  for (const chip of box.children) {
    chip.setAttribute('aria-pressed', String(chosen.has(chip.dataset.state)));
    chip.querySelector('b').textContent = counts[chip.dataset.state];
  }
}

function renderMoment() {
  const slider = byId('slider');
  slider.max = model.rows.length;
  slider.value = model.applied;
  const row = model.rows[model.applied - 1];
  const text = row ? `revision ${row.revision} of ${model.last()}, ${time(row.time, true)}` : `revision ${model.through}`;
  byId('moment').textContent = text;
  slider.setAttribute('aria-valuetext', row ? `${text}: ${row.did} ${described(row)}` : text);
  const live = byId('live');
  live.textContent = about.live ? 'Live' : 'End';
  live.setAttribute('aria-pressed', String(isLive()));
  document.body.classList.toggle('past', !isLive());
}

function renderClock() {
  byId('clock').textContent = now === null ? '' : `${time(now, true)} UTC`;
}

function notice(text) {
  const box = byId('notice');
  box.hidden = !text;
  box.textContent = text ?? '';
}

function status(text, kind) {
  const pill = byId('status');
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
}

async function attempt(work) {
  try {
    await work();
    notice('');
  } catch (error) {
    if (error.name !== 'AbortError') notice(error.message);
  }
}

async function load() {
  about = await get('about');
  document.title = `Kubewright: ${about.title}`;
  byId('title').textContent = about.title;
  byId('page-requests').hidden = !about.requests;
  byId('page-controls').hidden = !about.admin;
  for (let skip = 0; ; skip += PAGE) {
    const { through, rows, more } = await get('objects', { skip, limit: PAGE });
    model.begin(through, rows);
    if (!more) break;
  }
  await more();
  byId('page-reconciles').hidden = !about.admin && !reports.reconciles.length;
}

async function more() {
  for (;;) {
    const answer = await get('writes', { after: model.last(), limit: PAGE });
    now = answer.now;
    model.add(answer.rows, isLive());
    if (answer.missed) notice(`${answer.missed} writes were made faster than they could be kept, and are not shown.`);
    if (answer.rows.length < PAGE) break;
    status(`loading, revision ${model.last()}`, 'busy');
  }
  await reports.more();
}

const update = throttled(async () => {
  try {
    await more();
    renderClock();
    if (state.page === 'objects') renderObjects();
    if (state.page === 'reconciles') reconciles.show(state.reconciles);
  } catch (error) {
    status('ended', 'ended');
    notice(error.message);
  }
}, 250);

async function stayLive() {
  for (let failures = 0; failures < 3;) {
    try {
      status('live', 'live');
      await follow(() => { failures = 0; update(); });
      failures += 1;
    } catch {
      failures += 1;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  status('ended', 'ended');
  notice('The cluster has ended. What you see is what it was.');
}

function step(by) {
  const count = Math.max(0, Math.min(model.rows.length, model.applied + by));
  go({ revision: count === model.rows.length && by > 0 ? null : count ? model.rows[count - 1].revision : model.through });
}

function wire() {
  const search = byId('search');
  search.addEventListener('input', throttled(() => go({ search: search.value.trim() }), 120));
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { search.value = ''; go({ search: '' }); byId('tree').focus(); }
    if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); go({ search: search.value.trim() }); tree.first(); byId('tree').focus(); }
  });
  byId('slider').addEventListener('input', () => {
    const count = Number(byId('slider').value);
    go({ revision: count === model.rows.length ? null : count ? model.rows[count - 1].revision : model.through });
  });
  byId('back').addEventListener('click', () => step(-1));
  byId('forward').addEventListener('click', () => step(1));
  byId('live').addEventListener('click', () => go({ revision: isLive() ? model.revision() : null }));
  byId('axis').addEventListener('click', () => {
    timeline.setByOrder(!timeline.byOrder);
    byId('axis').setAttribute('aria-pressed', String(timeline.byOrder));
  });
  byId('zoom-in').addEventListener('click', () => timeline.zoom(0.6, 0.5));
  byId('zoom-out').addEventListener('click', () => timeline.zoom(1.6, 0.5));
  byId('zoom-fit').addEventListener('click', () => timeline.fit());
  byId('pages').addEventListener('click', (event) => event.target.dataset.page && go({ page: event.target.dataset.page }));
  byId('pages').addEventListener('keydown', (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const shown = PAGES.filter((page) => !byId(`page-${page}`).hidden);
    const next = shown[(shown.indexOf(state.page) + by + shown.length) % shown.length];
    go({ page: next });
    byId(`page-${next}`).focus();
  });
  byId('copy').addEventListener('click', async () => {
    const fields = new URLSearchParams(written());
    fields.set('token', token());
    await navigator.clipboard.writeText(`${location.origin}/#${fields}`);
    byId('copy').textContent = 'Copied';
    setTimeout(() => { byId('copy').textContent = 'Copy link'; }, 1500);
  });
  addEventListener('keydown', (event) => {
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') { event.preventDefault(); go({ page: 'objects' }); search.focus(); search.select(); }
    if (event.key === '[') step(-1);
    if (event.key === ']') step(1);
  });
  addEventListener('hashchange', () => { if (takeToken()) { read(); render(); } });
  addEventListener('popstate', () => { read(); render(); });
  const grip = byId('grip');
  // How wide the list is, in pixels; the object keeps room beside it.
  const [narrowest, beside] = [220, 320];
  const say = () => {
    grip.setAttribute('aria-valuenow', Math.round(grip.getBoundingClientRect().left));
    grip.setAttribute('aria-valuemin', narrowest);
    grip.setAttribute('aria-valuemax', Math.max(narrowest, innerWidth - beside));
  };
  const width = (pixels) => {
    document.documentElement.style.setProperty('--side', `${Math.max(narrowest, Math.min(innerWidth - beside, pixels))}px`);
    say();
  };
  say();
  addEventListener('resize', say);
  grip.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    const move = (at) => width(at.clientX);
    addEventListener('pointermove', move);
    addEventListener('pointerup', () => removeEventListener('pointermove', move), { once: true });
  });
  grip.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
    if (by) width(grip.getBoundingClientRect().left + by);
  });
}

async function start() {
  wire();
  if (!takeToken()) {
    status('locked', 'ended');
    notice('This page needs the token of the link that kubewright has printed: open that link, all of it.');
    return;
  }
  read();
  try {
    await load();
  } catch (error) {
    status('ended', 'ended');
    notice(error.message);
    return;
  }
  status(about.live ? 'live' : 'recording', about.live ? 'live' : 'recording');
  renderClock();
  render();
  if (!about.live) return;
  stayLive();
  setInterval(() => {
    if (document.hidden) return;
    if (state.page === 'requests') attempt(() => requests.show(state.filters));
    get('about').then((found) => { now = found.now; renderClock(); }, () => {});
  }, 2000);
}

start();
