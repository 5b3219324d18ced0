// The writes, and the objects of any moment, which are folded from them.

const MOST = 60000;
const DROPPED = 10000;

const place = (row) => `${row.collection}\n${row.key}`;
const counted = (row) => (row.kind === 'Event' ? 'events' : row.state);

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
    // How many of `current` are in each state; events are counted by themselves.
    this.counts = { failing: 0, progressing: 0, ready: 0, plain: 0, events: 0 };
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
    const before = this.current.get(at);
    if (before) this.counts[counted(before)] -= 1;
    if (there) this.counts[counted(there)] += 1;
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
// What changes a few objects among ten thousand takes steps for these, for those above them, and for what stands beside these: an
// object that changed and stands where it stood, one that came and is nobody's owner yet, one that went and had nothing below it. What
// else there is (an owner that came late, or went) places all objects anew, which takes a step for each.
export class Forest {
  constructor() {
    this.nodes = new Map();
    this.byUid = new Map();
    // All nodes in their order, but for those that came and went since.
    this.ordered = [];
    this.came = [];
    this.went = false;
    // The uids that objects have named as their owners'.
    this.named = new Set();
    // Whether an object does not stand below its owner, for a circle or for the depth.
    this.isCut = false;
    this.groups = new Map();
    this.keep = () => true;
    this.cluster = this.#group('cluster', 'Cluster-wide', null);
    this.tops = [];
    // What has to be added up anew.
    this.dirty = new Set();
  }

  // Takes over what has changed, a row for each place and none for what went, and gives the groups at the top. `keep` says which
  // objects are wanted; one is in the tree when it is, or one below it. It is asked anew of all objects when it is another than before.
  show(changes, keep) {
    if (!changes.size && keep === this.keep) return this.tops;
    let isMoved = false;
    for (const [at, row] of changes) {
      const node = this.nodes.get(at);
      const stays = node && row && node.row.kind === row.kind && node.row.uid === row.uid && sameOwners(node.row, row);
      if (stays) {
        this.#fill(node, row, keep);
        this.dirty.add(node);
        continue;
      }
      // Who was cut from its owner may get another.
      isMoved ||= this.isCut;
      if (node) isMoved = this.#remove(at, node) || isMoved;
      if (row) isMoved = this.#insert(at, row, keep) || isMoved;
    }
    if (keep !== this.keep) {
      this.keep = keep;
      for (const node of this.nodes.values()) node.wanted = keep(node.row);
      isMoved = true;
    }
    if (isMoved) this.#place();
    else this.#addUp();
    return this.tops;
  }

  // The row below which an object stands; none at the top.
  owner(row) {
    return this.nodes.get(place(row))?.owner?.row ?? null;
  }

  #fill(node, row, keep) {
    node.row = row;
    node.state = row.state;
    node.wanted = keep(row);
  }

  // Adds an object where it stands; true where that cannot be said without the others.
  #insert(at, row, keep) {
    const node = { id: row.uid || at, name: nameOf(row), group: false, all: [], children: [], owner: null, depth: 0, entry: null };
    this.#fill(node, row, keep);
    const namespace = namespaceOf(row);
    node.top = namespace ? this.#group(`ns:${namespace}`, namespace, null) : this.#group(`kind:${row.kind}`, row.kind, this.cluster);
    this.nodes.set(at, node);
    this.came.push(node);
    if (row.uid) this.byUid.set(row.uid, node);
    for (const uid of row.owners ?? []) this.named.add(uid);
    if (row.uid && this.named.has(row.uid)) return true;
    node.owner = this.#owner(node);
    node.depth = node.owner ? node.owner.depth + 1 : 0;
    if (node.depth === DEEPEST) return true;
    const { all } = above(node);
    all.splice(placeIn(all, node), 0, node);
    this.dirty.add(node);
    return false;
  }

  // Takes an object away; true where something stood below it.
  #remove(at, node) {
    this.nodes.delete(at);
    if (this.byUid.get(node.row.uid) === node) this.byUid.delete(node.row.uid);
    this.went = true;
    node.gone = true;
    if (node.all.length) return true;
    const { all } = above(node);
    const found = placeIn(all, node);
    if (all[found] !== node) return true;
    all.splice(found, 1);
    this.dirty.delete(node);
    this.dirty.add(above(node));
    return false;
  }

  #group(id, name, owner) {
    if (!this.groups.has(id)) {
      const made = { id, name, row: null, group: true, state: 'plain', wanted: false, all: [], children: [], owner, top: null, entry: null };
      this.groups.set(id, made);
      if (owner) {
        owner.all.push(made);
        owner.all.sort(byName);
      }
    }
    return this.groups.get(id);
  }

  // Places all objects anew.
  #place() {
    if (this.went) this.ordered = this.ordered.filter((node) => !node.gone);
    this.ordered = merged(this.ordered, this.came.filter((node) => !node.gone).sort(order));
    [this.came, this.went] = [[], false];
    for (const group of this.groups.values()) if (group !== this.cluster) group.all = [];
    this.named.clear();
    for (const node of this.ordered) {
      if (node.all.length) node.all = [];
      for (const uid of node.row.owners ?? []) this.named.add(uid);
      node.owner = this.#owner(node);
      node.depth = node.owner ? UNKNOWN : 0;
    }
    this.isCut = false;
    for (const node of this.ordered) if (node.depth === UNKNOWN && measure(node)) this.isCut = true;
    // In their order, so that what is below each is in it, too.
    for (const node of this.ordered) above(node).all.push(node);
    for (const group of this.groups.values()) if (!group.owner) addUpAll(group);
    this.dirty.clear();
    this.#order();
  }

  // Adds up what has changed, and all above it.
  #addUp() {
    const above_ = new Set();
    for (const node of this.dirty) {
      addUp(node);
      if (above(node)) above_.add(above(node));
    }
    this.dirty.clear();
    // Those above are added up after what is below them: the deepest first.
    const deepest = [...above_].filter((node) => !node.group).sort((one, other) => other.depth - one.depth);
    const groups = new Set([...above_].filter((node) => node.group));
    for (const seen = new Set(deepest); deepest.length;) {
      const node = deepest.shift();
      addUp(node);
      const next = above(node);
      if (next.group) groups.add(next);
      else if (!seen.has(next)) {
        seen.add(next);
        const at = deepest.findIndex((one) => one.depth < next.depth);
        deepest.splice(at < 0 ? deepest.length : at, 0, next);
      }
    }
    for (const group of groups) addUp(group);
    addUp(this.cluster);
    this.#order();
  }

  #order() {
    const isLast = (top) => Number(top.name.startsWith('kube-'));
    const tops = [...this.groups.values()].filter((group) => group.id.startsWith('ns:') && group.children.length);
    tops.sort((one, other) => isLast(one) - isLast(other) || byName(one, other));
    this.tops = this.cluster.children.length ? [...tops, this.cluster] : tops;
  }

  // The first owner of an object that is there.
  #owner(node) {
    for (const uid of node.row.owners ?? []) {
      const found = this.byUid.get(uid);
      if (found && found !== node) return found;
    }
    return null;
  }
}

const byName = (one, other) => compare(one.name, other.name);

// What a node stands in; nothing for the groups at the top.
const above = (node) => node.owner ?? node.top;

function sameOwners(one, other) {
  const [some, others] = [one.owners ?? [], other.owners ?? []];
  return some === others || (some.length === others.length && some.every((uid, at) => uid === others[at]));
}

// Where a node is, or would be, among others in their order.
function placeIn(nodes, node) {
  let [low, high] = [0, nodes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(nodes[middle], node) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Finds how deep a node stands, and those above it. Circles are cut, and chains at their deepest; says whether one was.
function measure(node) {
  const path = [];
  let isCut = false;
  let next = node;
  for (; next && next.depth === UNKNOWN; next = next.owner) {
    next.depth = ASKED;
    path.push(next);
  }
  const cut = (one) => {
    [one.owner, one.depth] = [null, 0];
    isCut = true;
  };
  // Where the path leads back to itself, it ends in the circle.
  if (next?.depth === ASKED) {
    for (let at = null; at !== next;) {
      at = path.pop();
      cut(at);
    }
  }
  for (let at = path.pop(); at; at = path.pop()) {
    at.depth = at.owner ? at.owner.depth + 1 : 0;
    if (at.depth === DEEPEST) cut(at);
  }
  return isCut;
}

// Nodes that are in order, and others that are, in one.
function merged(some, others) {
  if (!others.length) return some;
  const all = [];
  let next = 0;
  for (const node of some) {
    while (next < others.length && order(others[next], node) < 0) all.push(others[next++]);
    all.push(node);
  }
  while (next < others.length) all.push(others[next++]);
  return all;
}

// Whether a node is in the tree.
const isShown = (node) => node.wanted || node.children.length > 0;

// Leaves out what is not wanted below a node, and gives it the worst state and the count of what is.
function addUp(node) {
  node.below = node.state;
  node.count = node.group ? 0 : 1;
  let shown = 0;
  for (const child of node.all) {
    if (!isShown(child)) continue;
    shown += 1;
    node.count += child.count;
    if (RANK[child.below] > RANK[node.below]) node.below = child.below;
  }
  node.children = shown === node.all.length ? node.all : node.all.filter(isShown);
}

function addUpAll(node) {
  for (const child of node.all) addUpAll(child);
  addUp(node);
}

// The tree of some objects, of which `keep` says which are wanted.
export function forest(rows, keep) {
  return new Forest().show(new Map(rows.map((row) => [place(row), row])), keep);
}
