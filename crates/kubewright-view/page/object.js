// One object: as YAML with who owns which field, and what has changed it.

import { get } from './client.js';
import { byId, described, el, time, writer } from './dom.js';

const LINES = 4000;

export class ObjectPanel {
  // `go` is called with what of the state of the page is to change.
  constructor(go) {
    this.go = go;
    this.box = byId('object');
    this.secrets = false;
    this.shown = null;
    this.empty();
  }

  empty() {
    this.shown = null;
    this.box.replaceChildren(
      el('div', { class: 'blank' },
        el('p', {}, 'Choose an object to see it as YAML, who owns its fields, and what has changed it.'),
        el('p', { class: 'muted' }, el('kbd', {}, '/'), ' searches, ', el('kbd', {}, '↑'), ' ', el('kbd', {}, '↓'), ' move, ',
          el('kbd', {}, '['), ' ', el('kbd', {}, ']'), ' go through time.')),
    );
  }

  // Says that an object was not there yet.
  absent(key) {
    this.abort?.abort();
    this.shown = null;
    this.box.replaceChildren(el('div', { class: 'blank' }, el('p', {}, `${key} was not there yet.`)));
  }

  // Shows an object as it was at a revision; `owners` are the rows of those above it, the highest first.
  async show({ collection, key, tab, revision, live, owners }) {
    const wanted = JSON.stringify([collection, key, tab, this.secrets, live ? this.seen?.(collection, key) : revision]);
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const fields = { collection, key, at: live ? '' : revision, secrets: this.secrets ? 'shown' : '' };
    const waits = setTimeout(() => this.box.setAttribute('aria-busy', 'true'), 200);
    try {
      const object = await get('object', fields, abort.signal);
      const history = tab === 'history' ? await get('history', { ...fields, limit: 30 }, abort.signal) : null;
      this.#render({ object, history, tab, owners, collection, key });
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.shown = null;
      this.box.replaceChildren(el('div', { class: 'blank' }, el('p', {}, error.message)));
    } finally {
      clearTimeout(waits);
      this.box.removeAttribute('aria-busy');
    }
  }

  #render({ object, history, tab, owners, collection, key }) {
    const { row } = object;
    const scroll = this.at === `${collection}\n${key}\n${tab}` ? this.box.querySelector('.scroll')?.scrollTop : 0;
    this.at = `${collection}\n${key}\n${tab}`;
    const tabs = [['yaml', 'YAML'], ['history', 'History']].map(([id, name]) =>
      el('button', { role: 'tab', 'aria-selected': String(tab === id), class: 'tab', onclick: () => this.go({ tab: id }) }, name));
    const reveal = object.secret && el('button', {
      class: 'quiet', 'aria-pressed': String(this.secrets),
      onclick: () => { this.secrets = !this.secrets; this.go({}); },
    }, this.secrets ? 'Hide values' : 'Show values');
    const path = owners.flatMap((owner) => [
      el('button', { class: 'link', onclick: () => this.go({ object: owner }) }, described(owner)), el('span', { class: 'muted' }, ' › ')]);
    const head = el('header', { class: 'head' },
      path.length > 0 && el('div', { class: 'path' }, path),
      el('h2', {}, el('span', { class: 'kind' }, row.kind), ' ', el('span', {}, key)),
      el('div', { class: 'facts' },
        el('span', { class: `badge ${object.gone ? 'gone' : row.state}` }, object.gone ? 'deleted' : row.state === 'plain' ? 'no state' : row.state),
        row.message && el('span', {}, row.message),
        el('span', { class: 'muted' }, `revision ${row.revision}, ${time(row.time, true)}, by ${writer(row)}`)),
      el('div', { class: 'tabs' }, el('div', { role: 'tablist', 'aria-label': 'Parts of the object' }, tabs), el('span', { class: 'grow' }), reveal));
    const body = el('div', { class: 'scroll', tabIndex: 0, role: 'tabpanel', 'aria-label': tab === 'history' ? 'History' : 'YAML' },
      tab === 'history' ? this.#history(history) : this.#yaml(object));
    this.box.replaceChildren(head, body);
    body.scrollTop = scroll ?? 0;
  }

  #yaml({ lines, managers }) {
    const legend = managers.map((manager, place) =>
      el('li', {}, el('span', { class: `owner owner-${place % 8}`, 'aria-hidden': 'true' }), el('b', {}, manager.name),
        el('span', { class: 'muted' }, ` ${manager.operation}${manager.subresource ? ` /${manager.subresource}` : ''} ${manager.time.replace('T', ' ').replace('Z', '')}`)));
    let last = '';
    const shown = lines.slice(0, LINES).map(({ text, owners = [] }) => {
      const names = owners.map((place) => managers[place].name).join(', ');
      const named = names && names !== last;
      last = names;
      return el('div', { class: 'yaml-line' },
        el('span', { class: 'stripes', 'aria-hidden': 'true' }, owners.slice(0, 3).map((place) => el('span', { class: `owner owner-${place % 8}` }))),
        el('code', {}, ...coloured(text)),
        named && el('span', { class: 'by', title: `owned by ${names}` }, names));
    });
    return [
      managers.length > 0 && el('ul', { class: 'legend', 'aria-label': 'Who owns fields' }, legend),
      el('div', { class: 'yaml' }, shown),
      lines.length > LINES && el('p', { class: 'muted pad' }, `${lines.length - LINES} lines more; kubectl get -o yaml has them all`),
    ];
  }

  #history({ changes, more }) {
    const one = (change) => {
      const diff = change.diff.length
        ? change.diff.map((line) => el('div', { class: `diff ${{ '+': 'plus', '-': 'minus', '@': 'place' }[line[0]] ?? ''}` },
            line[0] === '@' ? (/^@\d+$/.test(line) ? `line ${line.slice(1)}` : line.slice(1)) : line))
        : [el('p', { class: 'muted pad' }, 'Nothing but its version, or who owns which field.')];
      const long = change.did !== 'update';
      return el('li', { class: 'change' },
        el('details', { open: !long },
          el('summary', {},
            el('span', { class: `did ${change.did}` }, change.did), ' ',
            el('span', { class: 'mono' }, time(change.time)), ' ', el('b', {}, writer(change)), ' ',
            el('span', { class: 'muted' }, [change.user, change.program].filter(Boolean).join(' · '))),
          el('div', { class: 'diffs', tabIndex: 0, role: 'group', 'aria-label': `What revision ${change.revision} changed` }, diff),
          change.more ? el('p', { class: 'muted pad' }, `${change.more} lines more`) : null),
        el('button', { class: 'link', title: 'Show the cluster as it was then', onclick: () => this.go({ revision: change.revision }) }, `revision ${change.revision}`));
    };
    return [el('ol', { class: 'changes' }, changes.map(one)), more && el('p', { class: 'muted pad' }, 'Older changes are not shown: go back in time to see them.')];
  }
}

// A line of YAML with its key apart from its value.
function coloured(text) {
  const found = /^(\s*(?:- )*)((?:"[^"]*"|[^\s":][^":]*):)(.*)$/.exec(text);
  if (!found) return [text];
  return [found[1], el('span', { class: 'key' }, found[2]), el('span', { class: 'value' }, found[3])];
}
