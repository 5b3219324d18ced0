// The clock and the faults by hand: what /kubewright on the API server does.

import { get, send } from './client.js';
import { byId, el } from './dom.js';

const STEPS = ['1m', '10m', '1h', '24h'];
const PRESETS = [
  ['Updates and patches conflict, twice', { match: { verbs: ['update', 'patch'] }, fault: 'conflict', times: 2 }],
  ['Reads of pods get 503', { match: { verbs: ['get', 'list'], resource: 'pods' }, fault: { error: { code: 503 } }, times: 10 }],
  ['Deployments answer two seconds late', { match: { resource: 'deployments', group: 'apps' }, fault: { latency: { by: '2s' } } }],
  ['Open watches end', { match: {}, fault: { dropWatch: { how: 'reset' } }, times: 5 }],
];

export class Controls {
  constructor() {
    this.box = byId('controls');
    this.error = el('p', { class: 'error', role: 'alert' });
    this.now = el('p', { class: 'large mono' });
    this.why = el('p', { class: 'muted' });
    const by = el('input', { value: '5m', size: 8, 'aria-label': 'How much time' });
    const advance = (step) => this.#try(() => send('POST', 'clock/advance', { by: step }));
    this.steps = [
      ...STEPS.map((step) => el('button', { onclick: () => advance(step) }, `+${step}`)),
      el('form', { class: 'inline', onsubmit: (event) => { event.preventDefault(); advance(by.value.trim()); } }, by, el('button', {}, 'Advance')),
    ];
    const rule = el('textarea', { rows: 8, spellcheck: false, 'aria-label': 'The fault, as JSON', class: 'mono' });
    const put = (preset) => { rule.value = JSON.stringify(preset, null, 2); };
    put(PRESETS[0][1]);
    this.faults = el('tbody');
    this.box.append(
      el('div', { class: 'cards' },
        el('section', { class: 'card', 'aria-labelledby': 'time-head' }, el('h2', { id: 'time-head' }, 'Time'), this.now, el('div', { class: 'row' }, this.steps), this.why),
        el('section', { class: 'card wide', 'aria-labelledby': 'faults-head' }, el('h2', { id: 'faults-head' }, 'Faults'),
          el('table', { class: 'table' },
            el('thead', {}, el('tr', {}, ['Fault', 'Which requests', 'What happens', 'Struck', 'Remove'].map((name) => el('th', { scope: 'col' }, name)))), this.faults),
          el('h3', {}, 'Inject'),
          el('div', { class: 'row' }, PRESETS.map(([name, preset]) => el('button', { class: 'quiet', onclick: () => put(preset) }, name))),
          el('form', { onsubmit: (event) => { event.preventDefault(); this.#inject(rule.value); } }, rule, el('div', { class: 'row' }, el('button', {}, 'Inject'))),
          el('p', { class: 'muted' }, 'All that a fault can be is in docs/admin.md.'))),
      this.error,
    );
  }

  #inject(text) {
    this.#try(() => {
      let rule;
      try {
        rule = JSON.parse(text);
      } catch (error) {
        throw new Error(`The fault is no JSON: ${error.message}`);
      }
      return send('POST', 'faults', rule);
    });
  }

  async #try(work) {
    this.error.textContent = '';
    try {
      await work();
      await this.show();
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  async show() {
    const [clock, told] = await Promise.all([get('clock'), get('faults')]);
    this.now.textContent = clock.now.replace('T', ' ').replace('Z', ' UTC');
    for (const part of this.steps) for (const button of part.matches('button') ? [part] : part.querySelectorAll('button')) button.disabled = !clock.canAdvance;
    this.why.textContent = clock.canAdvance ? 'All that falls due in it happens.'
      : 'The cluster lives by the clock of this machine. Start it with --clock, such as --clock speed=1, to let time pass by hand.';
    const faults = told.faults ?? told;
    this.faults.replaceChildren(...faults.map((fault) =>
      el('tr', {}, el('td', { class: 'mono' }, String(fault.id)), el('td', { class: 'mono' }, JSON.stringify(fault.match ?? {})),
        el('td', { class: 'mono' }, JSON.stringify(fault.fault)), el('td', { class: 'right' }, String(fault.hits ?? 0)),
        el('td', {}, el('button', { class: 'quiet', 'aria-label': `Remove fault ${fault.id}`, onclick: () => this.#try(() => send('DELETE', `faults/${fault.id}`)) }, 'Remove')))));
    if (!faults.length) this.faults.append(el('tr', {}, el('td', { colSpan: 5, class: 'empty' }, 'No faults: all requests go their way.')));
  }
}
