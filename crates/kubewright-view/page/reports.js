// What happens besides writes: reconciles and queues of operators, and what a test did to the cluster.

const PAGE = 5000;
const MOST = 40000;
const DROPPED = 10000;
// The marks that are shown on the timeline.
const SHOWN = new Set(['fault', 'clock']);

export class Reports {
  // `get` asks for data.
  constructor(get) {
    this.get = get;
    this.reconciles = [];
    this.marks = [];
    this.queues = [];
    // When the queues were told, in cluster time.
    this.now = null;
    this.after = 0;
    this.marksAfter = 0;
  }

  async more() {
    for (;;) {
      const answer = await this.get('reconciles', { after: this.after, marksAfter: this.marksAfter, limit: PAGE });
      const began = (one) => one.time;
      const first = answer.after - answer.reconciles.length;
      answer.reconciles.forEach((one, place) => this.reconciles.push(Object.assign(one, { position: first + place })));
      // They come in the order in which they ended, and the timeline goes by when they began.
      if (answer.reconciles.length) this.reconciles.sort((one, other) => began(one) - began(other));
      this.marks.push(...answer.marks.filter((mark) => SHOWN.has(mark.what)));
      this.marks.sort((one, other) => one.time - other.time);
      [this.after, this.marksAfter, this.queues, this.now] = [answer.after, answer.marksAfter, answer.queues, answer.now];
      if (this.reconciles.length > MOST) this.reconciles.splice(0, DROPPED);
      if (answer.reconciles.length < PAGE) return;
    }
  }

  // What a reconcile read and wrote; none, where nobody knows it any more.
  async accesses(one) {
    one.details ??= await this.get('reconcile', { position: one.position }).catch(() => ({ accesses: [], leftOut: one.reads + one.writes }));
    return one.details;
  }

  controllers() {
    return [...new Set([...this.reconciles.map((one) => one.controller), ...this.queues.map((one) => one.controller)])].sort();
  }
}
