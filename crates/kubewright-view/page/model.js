// The writes, and the objects of any moment, which are folded from them.

const MOST = 60000;
const DROPPED = 10000;

const place = (row) => `${row.collection}\n${row.key}`;

export class Model {
  constructor() {
    this.base = new Map();
    this.rows = [];
    // What each write found in its place.
    this.before = [];
    this.latest = new Map();
    // So many writes are in `current`.
    this.applied = 0;
    this.current = new Map();
    this.through = 0;
  }

  begin(through, rows) {
    this.through = through;
    for (const row of rows) {
      this.base.set(place(row), row);
      this.latest.set(place(row), row);
      this.current.set(place(row), row);
    }
  }

  // Adds writes; the moment that is shown goes on with them where `follow` says so.
  add(rows, follow) {
    for (const row of rows) {
      if (row.revision <= this.last()) continue;
      const at = place(row);
      this.before.push(this.latest.get(at));
      this.rows.push(row);
      this.latest.set(at, row);
    }
    if (this.rows.length > MOST) this.#drop();
    if (follow) this.show(this.rows.length);
  }

  #drop() {
    if (this.applied < DROPPED) this.show(DROPPED);
    for (const row of this.rows.splice(0, DROPPED)) {
      if (row.did === 'delete') this.base.delete(place(row));
      else this.base.set(place(row), row);
      this.through = row.revision;
    }
    this.before.splice(0, DROPPED);
    this.applied -= DROPPED;
  }

  // Makes `current` the objects after so many writes.
  show(count) {
    const wanted = Math.max(0, Math.min(count, this.rows.length));
    for (; this.applied < wanted; this.applied += 1) this.#put(place(this.rows[this.applied]), this.rows[this.applied]);
    for (; this.applied > wanted; this.applied -= 1) {
      this.#put(place(this.rows[this.applied - 1]), this.before[this.applied - 1]);
    }
  }

  #put(at, row) {
    if (row === undefined || row.did === 'delete') this.current.delete(at);
    else this.current.set(at, row);
  }

  last() {
    return this.rows.length ? this.rows[this.rows.length - 1].revision : this.through;
  }

  // The revision that is shown.
  revision() {
    return this.applied ? this.rows[this.applied - 1].revision : this.through;
  }

  // How many writes there were up to a revision.
  countAt(revision) {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  find(collection, key) {
    return this.current.get(`${collection}\n${key}`);
  }

  // Whether an object has been there, up to the moment that is shown.
  known(collection, key) {
    if (this.find(collection, key) || this.base.has(`${collection}\n${key}`)) return true;
    for (let at = 0; at < this.applied; at += 1) {
      if (this.rows[at].key === key && this.rows[at].collection === collection) return true;
    }
    return false;
  }

  byUid() {
    const found = new Map();
    for (const row of this.current.values()) if (row.uid) found.set(row.uid, row);
    return found;
  }
}

const RANK = { failing: 3, progressing: 2, ready: 1, plain: 0 };
export const worse = (one, other) => (RANK[one] >= RANK[other] ? one : other);

const namespaceOf = (row) => (row.key.includes('/') ? row.key.slice(0, row.key.indexOf('/')) : '');
const nameOf = (row) => row.key.slice(row.key.indexOf('/') + 1);

const order = (one, other) =>
  one.kind < other.kind ? -1 : one.kind > other.kind ? 1 : one.key < other.key ? -1 : one.key > other.key ? 1 : 0;

// The objects as a tree: namespaces, in them the objects without an owner, and below each what it owns.
export function forest(rows, keep) {
  const nodes = new Map();
  const all = [];
  for (const row of rows) {
    const node = { id: row.uid || place(row), row, name: nameOf(row), children: [], state: row.state, kept: keep(row) };
    if (row.uid) nodes.set(row.uid, node);
    all.push(node);
  }
  const groups = new Map();
  const group = (id, name, into) => {
    if (!groups.has(id)) {
      const made = { id, name, children: [], state: 'plain', group: true, kept: false };
      groups.set(id, made);
      if (into) into.children.push(made);
    }
    return groups.get(id);
  };
  const tops = [];
  for (const node of all) {
    const owner = (node.row.owners ?? []).map((uid) => nodes.get(uid)).find((found) => found && found !== node);
    if (owner) {
      owner.children.push(node);
      continue;
    }
    const namespace = namespaceOf(node.row);
    if (namespace) group(`ns:${namespace}`, namespace).children.push(node);
    else group(`kind:${node.row.kind}`, node.row.kind, group('cluster', 'Cluster-wide')).children.push(node);
  }
  for (const [id, made] of groups) if (!id.startsWith('kind:')) tops.push(made);
  const weight = (top) => (top.id === 'cluster' ? 2 : top.name.startsWith('kube-') ? 1 : 0);
  tops.sort((one, other) => weight(one) - weight(other) || (one.name < other.name ? -1 : 1));
  return tops.map((top) => settle(top, 0)).filter((top) => top.kept);
}

// Sorts what is below, leaves out what is not wanted, and gives the node the worst state below it.
function settle(node, depth) {
  if (depth > 64) return { ...node, children: [] };
  node.children = node.children.map((child) => settle(child, depth + 1)).filter((child) => child.kept);
  node.children.sort((one, other) => {
    if (one.group || other.group) return one.name < other.name ? -1 : 1;
    return order(one.row, other.row);
  });
  node.below = node.state;
  node.count = node.group ? 0 : 1;
  for (const child of node.children) {
    node.below = worse(node.below, child.below);
    node.count += child.count;
    node.kept = true;
  }
  return node;
}
