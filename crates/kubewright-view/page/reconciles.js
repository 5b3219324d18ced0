// Reconciles of operators: which, why, and what came of it; and what their queues hold.

import { byId, duration, el, throttled, time } from './dom.js';

const SHOWN = 500;
const ENDS = [['', 'any end'], ['failed', 'failed'], ['done', 'done'], ['requeue', 'asked for later']];

export class Reconciles {
  // `go` is called with what of the state of the page is to change.
  constructor(reports, go) {
    this.reports = reports;
    this.box = byId('reconciles');
    this.controller = el('select', {});
    this.search = el('input', { type: 'search', placeholder: 'key, reason, error' });
    this.end = el('select', {}, ENDS.map(([value, name]) => el('option', { value }, name)));
    const changed = throttled(() => go({ reconciles: { controller: this.controller.value, text: this.search.value.trim(), end: this.end.value } }), 150);
    const field = (label, input) => {
      input.addEventListener('input', changed);
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
          el('thead', {}, el('tr', {}, ['Began', 'Controller', 'Key', 'Why', 'Waited', 'Took', 'End'].map((name) => el('th', { scope: 'col' }, name)))),
          this.body)),
    );
  }

  show({ controller, text, end }) {
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
    this.body.replaceChildren(...found.slice(-SHOWN).reverse().map(line));
    if (!found.length) {
      const none = this.reports.reconciles.length ? 'No reconcile is as the filters say.' : 'No operator has told of its reconciles: those on the SDK of Kubewright do.';
      this.body.append(el('tr', {}, el('td', { colSpan: 7, class: 'empty' }, none)));
    }
    this.queues.replaceChildren(...this.reports.queues.filter((one) => !controller || one.controller === controller).map((queue) => this.#queue(queue)));
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

function line(one) {
  return el('tr', {},
    el('td', { class: 'mono time' }, time(one.time)),
    el('td', { class: 'controller', title: one.program }, el('b', {}, one.controller), ' ', el('span', { class: 'muted' }, one.user.replace('system:serviceaccount:', ''))),
    el('td', { class: 'key' }, one.key),
    el('td', {}, one.reasons || '—'),
    el('td', { class: 'mono right' }, `${one.waited.toFixed(1)} ms`),
    el('td', { class: 'mono right' }, `${one.took.toFixed(1)} ms`),
    el('td', { class: 'end' }, one.failed ? el('span', { class: 'badge failing' }, 'failed') : null, one.failed ? ` ${one.outcome.replace(/^error: /, '')}` : one.outcome));
}
