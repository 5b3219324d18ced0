// Holds page/model.js to the cases that src/tree.rs is held to, and a tree that was changed to one that was made at once.
// Node runs it: `cargo xtask test`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
// The page has no package.json that says that its files are modules.
const { Forest, Model, forest } = await import(`data:text/javascript,${encodeURIComponent(read('../page/model.js'))}`);

const whole = (row) => ({ collection: `/${row.kind}`, state: 'plain', did: 'create', ...row });
const shown = (nodes, depth = 0) => nodes.flatMap((node) =>
  [`${'  '.repeat(depth)}${node.name} ${node.state}/${node.below} ${node.count}`, ...shown(node.children, depth + 1)]);

const cases = JSON.parse(read('tree.json'));
assert.ok(cases.length > 10);
for (const { promise, rows, wanted, lines } of cases) {
  const found = forest(rows.map(whole), (row) => !wanted || wanted.includes(row.key));
  assert.deepEqual(shown(found), lines, promise);
}

// The same dice each time (mulberry32).
let seed = 1;
const below = (most) => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) % most;
};
const one = (of) => of[below(of.length)];
const filters = [() => true, (row) => row.state === 'failing', (row) => row.key.includes('3')];
for (let round = 0; round < 400; round += 1) {
  const [model, kept] = [new Model(), new Forest()];
  let revision = 0;
  for (let step = 0; step < 30; step += 1) {
    const rows = Array.from({ length: below(8) }, () => {
      const owners = Array.from({ length: below(3) }, () => `${below(12)}`);
      const [kind, name] = [one(['A', 'B']), below(6)];
      revision += 1;
      return {
        revision, kind, collection: `/${kind}`, key: one(['', 'x/', 'kube-y/']) + name, uid: `${name + (kind === 'B' ? 6 : 0)}${one(['', '', '-new'])}`,
        owners, state: one(['plain', 'ready', 'failing']), did: one(['create', 'update', 'delete']),
      };
    });
    // An object's uid is its own.
    const uids = new Set();
    const own = rows.map((row) => ({ ...row, uid: `${row.key} ${row.uid}`, owners: row.owners.map((owner) => `${one(['', 'x/', 'kube-y/'])}${owner % 6} ${owner}`) }));
    model.add(own.filter((row) => !uids.has(row.uid) && uids.add(row.uid)), true);
    if (below(5) === 0) model.show(below(model.rows.length + 1));
    const keep = one(filters);
    const found = shown(kept.show(model.changes(), keep));
    assert.deepEqual(found, shown(forest([...model.current.values()], keep)), `round ${round}, step ${step}`);
    model.show(model.rows.length);
  }
}
