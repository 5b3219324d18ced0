// The tree: only what can be seen is in the document, so that ten thousand objects scroll as ten do.

import { byId, el } from './dom.js';
import { Forest } from './model.js';

const HEIGHT = 24;
const WORDS = { ready: 'ready', progressing: 'progressing', failing: 'failing', plain: '' };

export class Tree {
  // `choose` is called with the row of an object.
  constructor(choose) {
    this.choose = choose;
    this.box = byId('tree');
    this.space = el('div', { class: 'space', role: 'presentation' });
    this.box.append(this.space);
    this.forest = new Forest();
    this.toggled = new Map();
    this.visible = [];
    // The lines that are in the document, by what they are of.
    this.lines = new Map();
    this.active = null;
    this.activeAt = -1;
    this.searching = false;
    // Where it is scrolled to and how high it is, kept: to ask the document is to lay it out.
    [this.top, this.height] = [0, 0];
    this.box.addEventListener('scroll', () => { this.top = this.box.scrollTop; this.draw(); }, { passive: true });
    this.box.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => { [this.top, this.height] = [this.box.scrollTop, this.box.clientHeight]; this.draw(); }).observe(this.box);
  }

  // Shows the objects after these changes (see Forest.show), of which `keep` says which are wanted.
  show(changes, keep, searching) {
    const isSame = !changes.size && keep === this.forest.keep && searching === this.searching;
    const tops = this.forest.show(changes, keep);
    this.searching = searching;
    if (!isSame) this.#flatten(tops);
    this.draw();
  }

  #open(node, depth) {
    if (this.searching) return true;
    if (this.toggled.size && this.toggled.has(node.id)) return this.toggled.get(node.id);
    if (node.group) return depth === 0 && node.id !== 'cluster' && !node.name.startsWith('kube-');
    return true;
  }

  #flatten(tops = this.forest.tops) {
    this.visible = [];
    const walk = (nodes, depth, parent) => {
      for (let place = 0; place < nodes.length; place += 1) {
        const node = nodes[place];
        const open = node.children.length > 0 && this.#open(node, depth);
        // A node has one line at most: what is known of it is kept with it.
        const entry = (node.entry ??= { node, depth, open, parent, place, of: 0 });
        entry.depth = depth;
        entry.open = open;
        entry.parent = parent;
        entry.place = place;
        entry.of = nodes.length;
        const at = this.visible.push(entry) - 1;
        if (open) walk(node.children, depth + 1, at);
      }
    };
    walk(tops, 0, -1);
    const height = `${this.visible.length * HEIGHT}px`;
    if (this.space.style.height !== height) this.space.style.height = height;
    this.#activate(this.active);
  }

  #activate(id) {
    this.active = id;
    this.activeAt = id === null ? -1 : this.visible.findIndex(({ node }) => node.id === id);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.top / HEIGHT) - 8);
    const last = Math.min(this.visible.length, first + Math.ceil(this.height / HEIGHT) + 16);
    // A line that is there and says the same is left as it is.
    const before = this.lines;
    this.lines = new Map();
    const wanted = [];
    for (let at = first; at < last; at += 1) {
      const entry = this.visible[at];
      const { id } = entry.node;
      const says = this.#says(entry);
      const found = before.get(id);
      const isSame = found && says.every((one, place) => one === found.says[place]);
      const line = isSame ? found.line : this.#line(entry);
      if (isSame) before.delete(id);
      if (!isSame || found.at !== at) {
        line.id = `line-${at}`;
        line.style.top = `${at * HEIGHT}px`;
      }
      this.lines.set(id, { line, says, at });
      wanted.push(line);
    }
    for (const { line } of before.values()) line.remove();
    let next = this.space.firstChild;
    for (const line of wanted) {
      if (line === next) next = next.nextSibling;
      else this.space.insertBefore(line, next);
    }
    if (this.activeAt >= first && this.activeAt < last) this.box.setAttribute('aria-activedescendant', `line-${this.activeAt}`);
    else this.box.removeAttribute('aria-activedescendant');
  }

  // All that a line is made of.
  #says({ node, depth, open, place, of }) {
    return [node.row, depth, open, place, of, node.id === this.active, open ? node.state : node.below, node.count, node.children.length > 0];
  }

  #line({ node, depth, open, place, of }) {
    const state = open ? node.state : node.below;
    const twisty = node.children.length ? (open ? '▾' : '▸') : '';
    const words = [WORDS[state], node.row?.message].filter(Boolean).join(': ');
    const line = el(
      'div',
      {
        class: `line${node.group ? ' group' : ''}${node.id === this.active ? ' active' : ''}`,
        role: 'treeitem',
        'aria-level': depth + 1,
        'aria-setsize': of,
        'aria-posinset': place + 1,
        'aria-expanded': node.children.length ? String(open) : undefined,
        'aria-selected': String(node.id === this.active),
        onclick: (event) => {
          const at = this.visible.findIndex((entry) => entry.node.id === node.id);
          if (event.target.closest('.twisty') || node.group) this.#toggle(at);
          if (!event.target.closest('.twisty')) this.#choose(at);
        },
      },
      el('span', { class: 'twisty', 'aria-hidden': 'true' }, twisty),
      el('span', { class: `dot ${state}`, title: words || state, 'aria-hidden': 'true' }),
      node.row && el('span', { class: 'kind' }, node.row.kind),
      el('span', { class: 'name' }, node.name),
      node.group && el('span', { class: 'count' }, String(node.count)),
      node.row?.message && el('span', { class: 'message' }, node.row.message),
      words && el('span', { class: 'visually-hidden' }, words),
    );
    line.style.paddingLeft = `${8 + depth * 14}px`;
    return line;
  }

  #toggle(at) {
    const { node, open } = this.visible[at] ?? {};
    if (!node?.children.length) return;
    this.toggled.set(node.id, !open);
    this.#flatten();
    this.draw();
  }

  #choose(at) {
    const entry = this.visible[at];
    if (!entry) return;
    this.#activate(entry.node.id);
    const [top, bottom] = [at * HEIGHT, (at + 1) * HEIGHT];
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (bottom > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = bottom - this.box.clientHeight;
    this.draw();
    if (entry.node.row) this.choose(entry.node.row);
  }

  // Marks the object that is shown, and opens what it is in.
  select(row) {
    this.#activate(row ? row.uid || `${row.collection}\n${row.key}` : null);
    this.draw();
  }

  // The first object that is there.
  first() {
    const at = this.visible.findIndex(({ node }) => node.row);
    if (at >= 0) this.#choose(at);
  }

  #key(event) {
    const at = Math.max(0, this.activeAt);
    const entry = this.visible[at];
    if (!entry || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / HEIGHT) - 1);
    const moves = {
      ArrowDown: () => this.#choose(this.activeAt < 0 ? 0 : Math.min(this.visible.length - 1, at + 1)),
      ArrowUp: () => this.#choose(Math.max(0, at - 1)),
      PageDown: () => this.#choose(Math.min(this.visible.length - 1, at + page)),
      PageUp: () => this.#choose(Math.max(0, at - page)),
      Home: () => this.#choose(0),
      End: () => this.#choose(this.visible.length - 1),
      ArrowRight: () => (entry.open || !entry.node.children.length ? this.#choose(Math.min(this.visible.length - 1, at + 1)) : this.#toggle(at)),
      ArrowLeft: () => (entry.open ? this.#toggle(at) : this.#choose(Math.max(0, entry.parent))),
      Enter: () => this.#choose(at),
      ' ': () => this.#toggle(at),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
