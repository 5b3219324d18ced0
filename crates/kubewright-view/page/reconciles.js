// Reconciles of operators: which, why, and what came of it; and what their queues hold.

import { byId, duration, el, throttled, time } from './dom.js';

const SHOWN = 500;
const COLUMNS = 8;
const READS = new Set(['get', 'list', 'watch']);
const ENDS = [['', 'any end'], ['failed', 'failed'], ['done', 'done'], ['requeue', 'asked for later']];

export class Reconciles {
  // `go` is called with what of the state of the page is to change.
  // `look` with an object and a revision, or none.
  constructor(reports, go, look) {
    this.reports = reports;
    this.look = look;
    this.open = new Set();
    this.box = byId('reconciles');
    this.controller = el('select', {});
    this.search = el('input', { type: 'search', placeholder: 'key, reason, error' });
    this.end = el('select', {}, ENDS.map(([value, name]) => el('option', { value }, name)));
    const changed = () => go({ reconciles: { controller: this.controller.value, text: this.search.value.trim(), end: this.end.value } });
    const typed = throttled(changed, 150);
    const field = (label, input) => {
      // What is chosen counts at once: what is shown meanwhile would set it back.
      input.addEventListener('input', input === this.search ? typed : changed);
      return el('label', { class: 'field' }, el('span', {}, label), input);
    };
    this.count = el('p', { class: 'muted', role: 'status' });
    this.queues = el('div', { class: 'queues' });
    this.body = el('tbody');
    this.box.append(
      el('div', { class: 'toolbar' }, field('Controller', this.controller), field('What', this.search), field('End', this.end), this.count),
      this.queues,
      el('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Reconciles' },
        el('table', { class: 'table' },
          el('thead', {}, el('tr', {}, ['Began', 'Controller', 'Key', 'Why', 'Waited', 'Took', 'Read and wrote', 'End'].map((name) => el('th', { scope: 'col' }, name)))),
          this.body)),
    );
  }

  again() {
    this.show(this.shown);
  }

  show(shown) {
    this.shown = shown;
    const { controller, text, end } = shown;
    const names = this.reports.controllers();
    if (this.controller.children.length !== names.length + 1) {
      this.controller.replaceChildren(...[['', 'any controller'], ...names.map((name) => [name, name])].map(([value, name]) => el('option', { value }, name)));
    }
    this.controller.value = names.includes(controller) ? controller : '';
    for (const [input, value] of [[this.search, text], [this.end, end]]) if (document.activeElement !== input) input.value = value;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = (one) => {
      if (controller && one.controller !== controller) return false;
      if (end === 'failed' ? !one.failed : end && !one.outcome.startsWith(end)) return false;
      const all = `${one.key} ${one.reasons} ${one.outcome} ${one.program}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const found = this.reports.reconciles.filter(wanted);
    const failed = found.filter((one) => one.failed).length;
    this.count.textContent = `${found.length} reconciles, ${failed} failed${found.length > SHOWN ? `; the newest ${SHOWN} are shown` : ''}`;
    this.body.replaceChildren(...found.slice(-SHOWN).reverse().flatMap((one) => this.#lines(one)));
    if (!found.length) {
      const none = this.reports.reconciles.length ? 'No reconcile is as the filters say.' : 'No operator has told of its reconciles: those on the SDK of Kubewright do.';
      this.body.append(el('tr', {}, el('td', { colSpan: COLUMNS, class: 'empty' }, none)));
    }
    this.queues.replaceChildren(...this.reports.queues.filter((one) => !controller || one.controller === controller).map((queue) => this.#queue(queue)));
  }

  // A reconcile, and below it what it read and wrote where that is opened.
  #lines(one) {
    const open = this.open.has(one.position);
    const toggle = async () => {
      if (open) this.open.delete(one.position);
      else {
        await this.reports.accesses(one);
        this.open.add(one.position);
      }
      this.again();
      byId(`reconcile-${one.position}`)?.focus();
    };
    const first = line(one, open, toggle);
    return open ? [first, accesses(one, this.look)] : [first];
  }

  #queue(queue) {
    const failing = queue.failing.map((one) => {
      const left = one.retryInSeconds * 1000 - ((this.reports.now ?? 0) - Date.parse(queue.time));
      return el('li', {}, el('b', {}, one.key), ` again in ${left > 0 ? duration(left) : 'a moment'}: `, el('span', { class: 'muted' }, one.error));
    });
    return el('section', { class: 'queue', 'aria-label': `Queue of ${queue.controller}` },
      el('h3', {}, queue.controller, ' ', el('span', { class: 'muted' }, `${queue.waiting} due, ${queue.failing.length} in back-off`)),
      failing.length > 0 && el('ul', {}, failing));
  }
}

function line(one, open, toggle) {
  const count = one.reads + one.writes;
  const words = `${one.reads} read, ${one.writes} written`;
  return el('tr', {},
    el('td', { class: 'mono time' }, time(one.time)),
    el('td', { class: 'controller', title: one.program }, el('b', {}, one.controller), ' ', el('span', { class: 'muted' }, one.user.replace('system:serviceaccount:', ''))),
    el('td', { class: 'key' }, one.key),
    el('td', {}, one.reasons || '—'),
    el('td', { class: 'mono right' }, `${one.waited.toFixed(1)} ms`),
    el('td', { class: 'mono right' }, `${one.took.toFixed(1)} ms`),
    el('td', {}, count
      ? el('button', { class: 'link', type: 'button', id: `reconcile-${one.position}`, 'aria-expanded': String(open), 'aria-label': `${words} by the reconcile of ${one.key}`, onclick: toggle }, `${open ? '▾' : '▸'} ${words}`)
      : '—'),
    el('td', { class: 'end' }, one.failed ? el('span', { class: 'badge failing' }, 'failed') : null, one.failed ? ` ${one.outcome.replace(/^error: /, '')}` : one.outcome));
}

function accesses(one, look) {
  const { accesses: all, leftOut } = one.details;
  const items = all.map((access) => {
    const key = (access.key ?? '').replace(/^\//, '');
    const named = key && !key.endsWith('/');
    const what = `${access.resource.replace(/^\//, '')} ${key}`;
    // A part of an object is a part of its state.
    const collection = access.resource.split('/').slice(0, 2).join('/');
    const revision = Number(access.version);
    const shown = named && Number.isSafeInteger(revision)
      ? el('button', { class: 'link', type: 'button', onclick: () => look(collection, key, revision) }, what)
      : what;
    return el('li', { class: READS.has(access.verb) ? '' : 'wrote' },
      el('b', {}, access.verb), ' ', shown, access.cached ? el('span', { class: 'muted' }, ' in the cache') : null, ' ', came(access), access.times > 1 ? ` (${access.times} times)` : '');
  });
  if (leftOut) items.push(el('li', { class: 'muted' }, `and ${leftOut} more`));
  return el('tr', { class: 'accesses' }, el('td', { colSpan: COLUMNS }, el('ul', {}, items)));
}

// What came of an access.
function came(access) {
  if (access.version !== undefined) return `${READS.has(access.verb) ? 'at' : 'now at'} ${access.version}`;
  if (access.count !== undefined) return access.count === 1 ? '1 object' : `${access.count} objects`;
  if ('absent' in access) return 'not there';
  if (access.refused !== undefined) return el('span', { class: 'badge failing' }, `refused with ${access.refused}`);
  return 'unanswered' in access ? el('span', { class: 'badge failing' }, 'no answer') : '';
}
