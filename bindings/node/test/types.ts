// What the types promise compiles.
import { ApiError, Cluster, type FaultRule } from "kubewright";
import { useCluster } from "kubewright/vitest";

const rule: FaultRule = { match: { verbs: ["update"], group: "" }, fault: { latency: { by: "2s" } }, every: 3 };

export async function all(): Promise<Date> {
  const shared = useCluster({ nodes: 2, controllers: ["*", "-deployment"] });
  const cluster = await Cluster.start({ kubernetesVersion: "1.36" });
  const id: number = await cluster.addFault(rule);
  await cluster.removeFault(id);
  const log = await shared().requests({ verbs: "list", limit: 3 });
  const first: number | undefined = log.counts[0]?.count;
  const status = (error: unknown): number | undefined => (error instanceof ApiError ? error.status : first);
  status(undefined);
  return cluster.advance(1000);
}
