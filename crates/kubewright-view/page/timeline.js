// What happened over time on a canvas: a lane for each of the writers that write most, with a mark for each write; below them a lane for each
// controller that has told of its reconciles, with a bar for each; and a line for each fault and each time that was let pass.

import { byId, described, duration, time, writer } from './dom.js';

const LANES = 6;
const LANE = 17;
const TOP = 20;
const NAMES = 132;
const CONTROLLERS = 4;
const WEIGHT = { update: 1, create: 2, delete: 3 };

export class Timeline {
  // `go` is called with a count of writes.
  constructor(model, reports, go) {
    Object.assign(this, { model, reports, go, byOrder: false, from: null, to: null, wanted: false, names: [] });
    this.canvas = byId('canvas');
    this.tip = byId('tip');
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.#width());
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#share(event));
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => this.#press(event));
    canvas.addEventListener('pointermove', (event) => this.#hover(event));
    canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    canvas.addEventListener('keydown', (event) => {
      const moves = {
        ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), '+': () => this.zoom(0.7, 0.5), '=': () => this.zoom(0.7, 0.5),
        '-': () => this.zoom(1.4, 0.5), 0: () => this.fit(),
      };
      if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      moves[event.key]();
    });
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.styled = null; this.draw(); });
  }

  draw() {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => {
      this.wanted = false;
      this.#paint();
    });
  }

  setByOrder(byOrder) {
    this.byOrder = byOrder;
    this.fit();
  }

  fit() {
    this.from = this.to = null;
    this.draw();
  }

  zoom(by, around) {
    const [from, to] = this.#span();
    const at = from + (to - from) * around;
    const least = this.byOrder ? 10 : 5;
    if ((to - from) * by < least) return;
    [this.from, this.to] = [at - (at - from) * by, at + (to - at) * by];
    const [low, high] = this.#all();
    if (this.from <= low && this.to >= high) this.from = this.to = null;
    this.draw();
  }

  pan(share) {
    const [from, to] = this.#span();
    const by = (to - from) * share;
    [this.from, this.to] = [from + by, to + by];
    this.draw();
  }

  #width() {
    return Math.max(1, this.canvas.clientWidth - NAMES - 8);
  }

  #share(event) {
    return Math.min(1, Math.max(0, (event.offsetX - NAMES) / this.#width()));
  }

  #value(at) {
    return this.byOrder ? at : this.model.rows[at].time;
  }

  #all() {
    const { rows } = this.model;
    if (!rows.length) return [0, 1];
    let [low, high] = [this.#value(0), this.#value(rows.length - 1)];
    if (!this.byOrder) {
      const { reconciles, marks } = this.reports;
      const began = [reconciles[0], marks[0]].filter(Boolean).map((one) => one.time);
      const last = [reconciles.at(-1), marks.at(-1)].filter(Boolean).map((one) => one.time + (one.took ?? 0));
      [low, high] = [Math.min(low, ...began), Math.max(high, ...last)];
    }
    const room = Math.max((high - low) * 0.01, this.byOrder ? 1 : 50);
    return [low - room, high + room];
  }

  #span() {
    return this.from === null ? this.#all() : [this.from, this.to];
  }

  // The first write at or after a place on the axis.
  #index(value) {
    let [low, high] = [0, this.model.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#value(middle) < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #lanes() {
    const { rows } = this.model;
    const [first, last] = [rows[0], rows[rows.length - 1]];
    if (this.counted?.last === last && this.counted?.first === first) return this.names;
    // What came since is counted alone, unless what was counted has gone.
    let { writers, length } = this.counted ?? {};
    if (!writers || this.counted.first !== first) [writers, length] = [new Map(), 0];
    for (let at = length; at < rows.length; at += 1) {
      // Names are kept with the rows: they do not change.
      const name = (rows[at].writer ??= writer(rows[at]));
      const one = writers.get(name) ?? { name, count: 0, lane: 0 };
      one.count += 1;
      writers.set(name, one);
      rows[at].lane = one;
    }
    this.counted = { writers, first, last, length: rows.length };
    const most = [...writers.values()].sort((one, other) => other.count - one.count);
    const own = most.length > LANES ? LANES - 1 : LANES;
    most.forEach((one, place) => { one.lane = Math.min(place, own); });
    this.names = most.slice(0, own).map(({ name }) => name);
    if (most.length > own) this.names.push(`${most.length - own} others`);
    return this.names;
  }

  #lane(row) {
    return row.lane.lane;
  }

  // The colours and the font of the page, asked once: each answer is of the whole document.
  #style() {
    if (!this.styled) {
      const style = getComputedStyle(document.body);
      const colours = new Map();
      for (const name of ['muted', 'line', 'lane', 'create', 'update', 'delete', 'accent', 'failing', 'progressing']) {
        colours.set(name, style.getPropertyValue(`--${name}`).trim());
      }
      this.styled = { font: `11px ${style.fontFamily}`, colour: (name) => colours.get(name) };
    }
    return this.styled;
  }

  #paint() {
    const { canvas, model } = this;
    const names = this.#lanes();
    const controllers = this.#controllers();
    const lanes = Math.max(names.length, 1);
    const [width, height] = [canvas.parentElement.clientWidth, TOP + (lanes + controllers.length) * LANE + 6];
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
      canvas.style.height = `${height}px`;
    }
    const { font, colour } = this.#style();
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = font;
    pen.textBaseline = 'middle';
    const [from, to] = this.#span();
    const across = this.#width();
    const x = (value) => NAMES + ((value - from) / (to - from)) * across;
    this.#grid(pen, { from, to, x, height, width, line: colour('line'), text: colour('muted') });
    names.forEach((name, lane) => {
      const y = TOP + lane * LANE;
      pen.fillStyle = colour('muted');
      pen.fillText(name.length > 20 ? `${name.slice(0, 19)}…` : name, 8, y + LANE / 2, NAMES - 14);
      pen.fillStyle = colour('lane');
      pen.fillRect(NAMES, y + 2, across, LANE - 4);
    });
    const colours = { create: colour('create'), update: colour('update'), delete: colour('delete') };
    // One mark for each place and lane, of the weightiest of what is there: 1 for a change, 2 for what came, 3 for what went.
    const places = Math.ceil(width / 2) + 2;
    const seen = new Uint8Array(places * Math.max(names.length, 1));
    const end = this.#index(to);
    const { byOrder } = this;
    const each = across / (to - from) / 2;
    for (let at = this.#index(from); at < end; at += 1) {
      const row = model.rows[at];
      const slot = row.lane.lane * places + Math.round(NAMES / 2 + each * ((byOrder ? at : row.time) - from));
      if (seen[slot] < WEIGHT[row.did]) seen[slot] = WEIGHT[row.did];
    }
    for (const [did, weight] of Object.entries(WEIGHT)) {
      pen.fillStyle = colours[did];
      // What stands side by side is one mark.
      for (let slot = 0; slot < seen.length; slot += 1) {
        if (seen[slot] !== weight) continue;
        const [first, end] = [slot, (Math.floor(slot / places) + 1) * places];
        while (slot + 1 < end && seen[slot + 1] === weight) slot += 1;
        pen.fillRect((first % places) * 2 - 1, TOP + Math.floor(first / places) * LANE + 3, (slot - first) * 2 + 2.5, LANE - 6);
      }
    }
    this.#reconciles(pen, { controllers, lanes, x, across, colour });
    this.#marks(pen, { x, height, width, colour });
    if (model.applied > 0) {
      const at = x(this.#value(model.applied - 1));
      if (at >= NAMES - 1 && at <= width) {
        pen.fillStyle = colour('accent');
        pen.fillRect(at - 0.75, TOP - 4, 1.5, height - TOP);
        pen.beginPath();
        pen.arc(at, TOP - 5, 3.5, 0, 7);
        pen.fill();
      }
    }
    if (!model.rows.length) {
      pen.fillStyle = colour('muted');
      pen.fillText('No writes yet', NAMES, TOP + LANE / 2);
    }
  }

  // The controllers that have told most.
  #controllers() {
    const all = this.reports.reconciles;
    if (this.told !== all.length) {
      const counts = new Map();
      for (const one of all) counts.set(one.controller, (counts.get(one.controller) ?? 0) + 1);
      const most = [...counts].sort((one, other) => other[1] - one[1]).slice(0, CONTROLLERS);
      [this.told, this.tellers] = [all.length, most.map(([name]) => name).sort()];
    }
    return this.tellers ?? [];
  }

  // Where a time is, which by order is behind the writes before it.
  #at(moment) {
    if (!this.byOrder) return moment;
    const { rows } = this.model;
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].time < moment) low = middle + 1;
      else high = middle;
    }
    return low - 0.5;
  }

  #reconciles(pen, { controllers, lanes, x, across, colour }) {
    const lane = new Map(controllers.map((name, number) => [name, TOP + (lanes + number) * LANE]));
    for (const [name, y] of lane) {
      pen.fillStyle = colour('muted');
      pen.fillText(name.length > 18 ? `↻ ${name.slice(0, 17)}…` : `↻ ${name}`, 8, y + LANE / 2, NAMES - 14);
      pen.fillStyle = colour('lane');
      pen.fillRect(NAMES, y + 2, across, LANE - 4);
    }
    const [from, to] = this.#span();
    // What each place of each lane has: 1 for a reconcile that went well, 2 for one that failed.
    const places = Math.ceil(across) + 3;
    const seen = new Map(controllers.map((name) => [name, new Uint8Array(places)]));
    for (const one of this.reports.reconciles) {
      const own = seen.get(one.controller);
      const [begin, end] = [this.#at(one.time), this.#at(one.time + one.took)];
      if (own === undefined || end < from || begin > to) continue;
      const left = Math.max(0, Math.round(x(begin) - NAMES));
      const right = Math.min(places, Math.max(left + 2, Math.round(x(end) - NAMES)));
      const weight = one.failed ? 2 : 1;
      for (let at = left; at < right; at += 1) if (own[at] < weight) own[at] = weight;
    }
    for (const [weight, name] of [[1, 'accent'], [2, 'failing']]) {
      pen.fillStyle = colour(name);
      for (const [controller, own] of seen) {
        for (let at = 0; at < places; at += 1) if (own[at] === weight) pen.fillRect(NAMES + at, lane.get(controller) + 5, 1, LANE - 10);
      }
    }
  }

  #marks(pen, { x, height, width, colour }) {
    pen.strokeStyle = colour('progressing');
    pen.setLineDash([3, 3]);
    for (const mark of this.reports.marks) {
      const at = x(this.#at(mark.time));
      if (at < NAMES || at > width) continue;
      pen.beginPath();
      pen.moveTo(at, TOP - 6);
      pen.lineTo(at, height);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  // The reconcile, or the fault, at a place of the canvas; nothing where there is a write.
  #besides(event) {
    const [from, to] = this.#span();
    const value = from + this.#share(event) * (to - from);
    const reach = ((to - from) / this.#width()) * 5;
    const lane = Math.floor((event.offsetY - TOP) / LANE) - Math.max(this.names?.length ?? 0, 1);
    const name = this.#controllers()[lane];
    if (name !== undefined) {
      const under = (one) => one.controller === name && this.#at(one.time) <= value + reach && this.#at(one.time + one.took) >= value - reach;
      const found = this.reports.reconciles.filter(under);
      const one = found.find((found) => found.failed) ?? found[0];
      if (!one) return null;
      const more = found.length > 1 ? `\nand ${found.length - 1} more here` : '';
      return `${one.controller} reconciled ${one.key}\n${one.reasons}\n${one.outcome}, ${time(one.time, true)}${more}`;
    }
    const mark = this.reports.marks.find((mark) => Math.abs(this.#at(mark.time) - value) <= reach);
    return mark ? `${mark.what}: ${mark.note}\n${time(mark.time, true)}` : null;
  }

  #grid(pen, { from, to, x, height, width, line, text }) {
    const steps = this.byOrder
      ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000]
      : [1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 10800000, 43200000, 86400000, 604800000, 2592000000, 31536000000];
    const step = steps.find((size) => ((to - from) / size) * 90 < width - NAMES) ?? steps[steps.length - 1];
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
      const at = x(value);
      if (at < NAMES) continue;
      pen.fillStyle = line;
      pen.fillRect(at, 14, 1, height);
      pen.fillStyle = text;
      const label = this.byOrder ? String(this.model.rows[value]?.revision ?? '')
        : step >= 86400000 ? time(value, true).slice(0, 10) : step < 1000 ? time(value) : time(value).slice(0, 8);
      if (at + 84 < width) pen.fillText(label, at + 3, 8);
    }
  }

  // The write at a place of the canvas, of the lane there where it has one near.
  #near(event) {
    const { rows } = this.model;
    if (!rows.length) return -1;
    const [from, to] = this.#span();
    const value = from + this.#share(event) * (to - from);
    const lane = Math.floor((event.offsetY - TOP) / LANE);
    const reach = ((to - from) / this.#width()) * 6;
    let best = -1;
    for (let at = this.#index(value - reach); at < rows.length && this.#value(at) <= value + reach; at += 1) {
      if (this.#lane(rows[at]) !== lane) continue;
      if (best < 0 || Math.abs(this.#value(at) - value) < Math.abs(this.#value(best) - value)) best = at;
    }
    return best >= 0 ? best : -1;
  }

  #press(event) {
    this.canvas.focus({ preventScroll: true });
    const start = { x: event.clientX, span: this.#span(), moved: false };
    const move = (at) => {
      const by = at.clientX - start.x;
      if (Math.abs(by) < 4 && !start.moved) return;
      start.moved = true;
      const shift = (by / this.#width()) * (start.span[1] - start.span[0]);
      [this.from, this.to] = start.span.map((value) => value - shift);
      this.draw();
    };
    const up = () => {
      removeEventListener('pointermove', move);
      if (start.moved || event.offsetX < NAMES) return;
      const near = this.#near(event);
      const [from, to] = start.span;
      const count = near >= 0 ? near + 1 : this.#index(from + this.#share(event) * (to - from));
      this.go(count, near >= 0 ? this.model.rows[near] : null);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up, { once: true });
  }

  #hover(event) {
    const near = event.buttons ? -1 : this.#near(event);
    const besides = near < 0 && !event.buttons ? this.#besides(event) : null;
    this.tip.hidden = near < 0 && besides === null;
    if (this.tip.hidden) return;
    const row = this.model.rows[near];
    const first = this.model.rows[0]?.time;
    this.tip.textContent = besides ?? `${row.did} ${described(row)}\n${row.writer}, revision ${row.revision}\n${time(row.time, true)}, ${duration(row.time - first)} in`;
    const { clientWidth } = this.canvas.parentElement;
    this.tip.style.left = `${Math.min(event.offsetX + 12, clientWidth - 290)}px`;
    this.tip.style.bottom = `${this.canvas.clientHeight - event.offsetY + 10}px`;
  }
}
