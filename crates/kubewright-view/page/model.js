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
    // What of `current` has changed since this was asked last: a row for each place, none for what went.
    this.changed = new Map();
  }

  begin(through, rows) {
    this.through = through;
    for (const row of rows) {
      this.base.set(place(row), row);
      this.latest.set(place(row), row);
      this.#put(place(row), row);
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
    const there = row === undefined || row.did === 'delete' ? undefined : row;
    if (there) this.current.set(at, there);
    else this.current.delete(at);
    this.changed.set(at, there);
  }

  // What has changed in `current` since this was called last.
  changes() {
    const { changed } = this;
    this.changed = new Map();
    return changed;
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
}

const RANK = { failing: 3, progressing: 2, ready: 1, plain: 0 };
export const worse = (one, other) => (RANK[one] >= RANK[other] ? one : other);

const namespaceOf = (row) => (row.key.includes('/') ? row.key.slice(0, row.key.indexOf('/')) : '');
const nameOf = (row) => row.key.slice(row.key.indexOf('/') + 1);

const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
const order = (one, other) =>
  compare(one.row.kind, other.row.kind) || compare(one.row.key, other.row.key) || compare(one.row.collection, other.row.collection);

// So many objects at most stand one below the other.
const DEEPEST = 64;
// The depth of a node that is not known yet, and of one of which it is being asked.
const UNKNOWN = -1;
const ASKED = -2;

// The objects as a tree, as src/tree.rs makes it; cases/tree.json has what both have to make. Namespaces, in them the objects without
// an owner, below each what it owns, and last the objects without a namespace, by kind. An owner that is not there is none. Objects
// that own each other in a circle stand where they would without an owner, and so does one below each 64 of a chain of owners.
//
// The nodes are kept in their order, so that a change of some among ten thousand sorts these alone; what stands below what is found
// anew each time, which takes a step for each object.
export class Forest {
  constructor() {
    this.nodes = new Map();
    this.byUid = new Map();
    this.ordered = [];
    this.groups = new Map();
    this.keep = () => true;
    this.cluster = this.#group('cluster', 'Cluster-wide');
    this.tops = [];
  }

  // Takes over what has changed, a row for each place and none for what went, and gives the groups at the top. `keep` says which
  // objects are wanted; one is in the tree when it is, or one below it. It is asked anew of all objects when it is another than before.
  show(changes, keep) {
    if (!changes.size && keep === this.keep) return this.tops;
    const came = [];
    let went = false;
    for (const [at, row] of changes) {
      const node = this.nodes.get(at);
      if (node && row && node.row.kind === row.kind) {
        if (node.row.uid !== row.uid) this.#forget(node);
        this.#fill(node, row, keep);
        continue;
      }
      if (node) {
        this.#forget(node);
        this.nodes.delete(at);
        node.row = null;
        went = true;
      }
      if (row) {
        const made = { children: [], group: false };
        this.nodes.set(at, made);
        this.#fill(made, row, keep);
        came.push(made);
      }
    }
    if (keep !== this.keep) for (const node of this.nodes.values()) node.wanted = keep(node.row);
    this.keep = keep;
    if (went) this.ordered = this.ordered.filter((node) => node.row);
    if (came.length) this.ordered = merged(this.ordered, came.sort(order));
    this.#place();
    return this.tops;
  }

  // The row below which an object stands; none at the top.
  owner(row) {
    return this.nodes.get(place(row))?.owner?.row ?? null;
  }

  #fill(node, row, keep) {
    node.row = row;
    node.id = row.uid || place(row);
    node.name = nameOf(row);
    node.state = row.state;
    node.wanted = keep(row);
    if (row.uid) this.byUid.set(row.uid, node);
    const namespace = namespaceOf(row);
    node.top = namespace ? this.#group(`ns:${namespace}`, namespace) : this.#group(`kind:${row.kind}`, row.kind);
  }

  #forget(node) {
    if (this.byUid.get(node.row.uid) === node) this.byUid.delete(node.row.uid);
  }

  #group(id, name) {
    if (!this.groups.has(id)) this.groups.set(id, { id, name, row: null, group: true, state: 'plain', wanted: false, children: [] });
    return this.groups.get(id);
  }

  #place() {
    for (const group of this.groups.values()) group.children = [];
    for (const node of this.ordered) {
      if (node.children.length) node.children = [];
      node.owner = node.row.owners ? this.#owner(node) : null;
      node.depth = node.owner ? UNKNOWN : 0;
    }
    for (const node of this.ordered) if (node.depth === UNKNOWN) measure(node);
    // In their order, so that what is below each is in it, too.
    for (const node of this.ordered) (node.owner ?? node.top).children.push(node);
    const tops = [];
    for (const group of this.groups.values()) {
      if (group.id.startsWith('ns:')) tops.push(group);
      else if (group.id.startsWith('kind:')) this.cluster.children.push(group);
    }
    const byName = (one, other) => compare(one.name, other.name);
    this.cluster.children.sort(byName);
    const isLast = (top) => Number(top.name.startsWith('kube-'));
    tops.sort((one, other) => isLast(one) - isLast(other) || byName(one, other));
    this.tops = [...tops, this.cluster].filter(settle);
  }

  // The first owner of an object that is there.
  #owner(node) {
    for (const uid of node.row.owners) {
      const found = this.byUid.get(uid);
      if (found && found !== node) return found;
    }
    return null;
  }
}

// Finds how deep a node stands, and those above it; circles are cut, and chains at their deepest.
function measure(node) {
  const path = [];
  let next = node;
  for (; next && next.depth === UNKNOWN; next = next.owner) {
    next.depth = ASKED;
    path.push(next);
  }
  // Where the path leads back to itself, it ends in the circle.
  if (next?.depth === ASKED) {
    for (let at = null; at !== next;) {
      at = path.pop();
      [at.owner, at.depth] = [null, 0];
    }
  }
  for (let at = path.pop(); at; at = path.pop()) {
    at.depth = (at.owner.depth + 1) % DEEPEST;
    if (at.depth === 0) at.owner = null;
  }
}

// Nodes that are in order, and others that are, in one.
function merged(some, others) {
  if (!some.length) return others;
  const all = [];
  let next = 0;
  for (const node of some) {
    while (next < others.length && order(others[next], node) < 0) all.push(others[next++]);
    all.push(node);
  }
  while (next < others.length) all.push(others[next++]);
  return all;
}

// Leaves out what is not wanted, gives the node the worst state below it, and says whether it is in the tree.
function settle(node) {
  let kept = 0;
  node.below = node.state;
  node.count = node.group ? 0 : 1;
  for (const child of node.children) {
    if (!settle(child)) continue;
    node.children[kept++] = child;
    node.below = worse(node.below, child.below);
    node.count += child.count;
  }
  node.children.length = kept;
  return kept > 0 || node.wanted;
}

// The tree of some objects, of which `keep` says which are wanted.
export function forest(rows, keep) {
  return new Forest().show(new Map(rows.map((row) => [place(row), row])), keep);
}
