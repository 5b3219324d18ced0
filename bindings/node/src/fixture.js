import { Cluster } from "./cluster.js";

/** A function as {@link useCluster} for the hooks of a test framework. */
export function fixture({ beforeAll, beforeEach, afterAll }) {
  return (options) => {
    let cluster;
    beforeAll(async () => {
      cluster = await Cluster.start(options);
    }, 120_000);
    beforeEach(() => cluster.reset());
    afterAll(() => cluster?.stop(), 30_000);
    return () => cluster;
  };
}
