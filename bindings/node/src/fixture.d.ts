import type { Cluster, ClusterOptions } from "./index.js";

/**
 * Starts a cluster for the tests of this file (or of this `describe`), resets it before each, and stops it after the last. Gives a function
 * that gives it, for tests and hooks.
 */
export function useCluster(options?: ClusterOptions): () => Cluster;
