// The log of requests: who has called what, and what was answered.

import { get } from './client.js';
import { byId, el, throttled, time } from './dom.js';

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'post'];
const STATUS = [['', 'any answer'], ['2xx', '2xx'], ['4xx', '4xx'], ['5xx', '5xx'], ['409', '409 conflict'], ['403', '403 forbidden'], ['cut', 'cut off'], ['fault', 'struck by a fault']];
const SHOWN = 500;

export class Requests {
  // `go` is called with what of the state of the page is to change.
  constructor(go) {
    this.box = byId('requests');
    this.filters = {};
    const filter = (name, input, label) => {
      const changed = throttled(() => go({ filters: this.#read() }), 200);
      input.addEventListener('input', changed);
      this.filters[name] = input;
      return el('label', { class: 'field' }, el('span', {}, label), input);
    };
    const options = (pairs) => pairs.map(([value, name]) => el('option', { value }, name));
    this.count = el('p', { class: 'muted', role: 'status' });
    this.body = el('tbody');
    this.box.append(
      el('div', { class: 'toolbar' },
        filter('who', el('input', { type: 'search', placeholder: 'user or program' }), 'Who'),
        filter('verb', el('select', {}, options([['', 'any verb'], ...VERBS.map((verb) => [verb, verb])])), 'Verb'),
        filter('what', el('input', { type: 'search', placeholder: 'resource, name, path' }), 'What'),
        filter('status', el('select', {}, options(STATUS)), 'Answer'),
        this.count),
      el('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Requests' },
        el('table', { class: 'table' },
          el('thead', {}, el('tr', {}, ['Time', 'Who', 'Verb', 'What', 'Answer', 'Took'].map((name) => el('th', { scope: 'col' }, name)))),
          this.body)),
    );
  }

  #read() {
    return Object.fromEntries(Object.entries(this.filters).map(([name, input]) => [name, input.value]));
  }

  async show(filters) {
    for (const [name, input] of Object.entries(this.filters)) {
      if (document.activeElement !== input) input.value = filters[name] ?? '';
    }
    const answer = await get('requests', { ...filters, limit: SHOWN });
    const { total, forgotten, requests } = answer;
    const kept = forgotten ? `; the oldest ${forgotten} are not kept` : '';
    this.count.textContent = `${requests.length}${requests.length === SHOWN ? ' newest' : ''} of ${total} requests${kept}`;
    this.body.replaceChildren(...requests.map(line));
    if (!requests.length) {
      this.body.append(el('tr', {}, el('td', { colSpan: 6, class: 'empty' }, total ? 'No request is as the filters say.' : 'No requests yet.')));
    }
  }
}

function line(request) {
  const code = request.code ?? 'cut';
  const class_ = request.code === null || request.code >= 500 ? 'failing' : request.code >= 400 ? 'progressing' : 'ready';
  return el('tr', {},
    el('td', { class: 'mono time' }, time(Date.parse(request.time))),
    el('td', { title: request.userAgent }, el('b', {}, (request.userAgent || '—').split(/[ /]/)[0]), ' ', el('span', { class: 'muted' }, request.user || 'anonymous')),
    el('td', {}, request.verb, request.patch && el('span', { class: 'muted' }, ` ${request.patch}`)),
    el('td', {}, request.what, ' ', el('span', { class: 'muted' }, request.key)),
    el('td', {}, el('span', { class: `badge ${class_}` }, String(code)), request.fault !== undefined && el('span', { class: 'badge gone' }, `fault ${request.fault}`)),
    el('td', { class: 'mono right' }, request.milliseconds === undefined ? '—' : `${request.milliseconds.toFixed(1)} ms`));
}
