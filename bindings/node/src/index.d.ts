/** What a cluster is like. */
export interface ClusterOptions {
  /** The built-in controllers that run, such as `["deployment"]`; `"*"` is all, `"-name"` all but that one. By default all. */
  controllers?: string[];
  /** How many simulated nodes there are. By default one. */
  nodes?: number;
  /** The version of Kubernetes that is served, such as `"1.36"`. By default the newest. */
  kubernetesVersion?: string;
  /** What cluster time starts at and how fast it passes, such as `"2030-01-01T00:00:00Z,speed=0"`. By default the machine's clock. */
  clock?: string;
}

/** Which requests a fault or a filter means: what is not said may be anything. */
export interface Match {
  verbs?: string[];
  /** The API group; `""` is core. */
  group?: string;
  resource?: string;
  /** `""` is the object itself. */
  subresource?: string;
  namespace?: string;
  name?: string;
  /** May end in `*`. */
  user?: string;
  /** How the user agent begins. */
  userAgent?: string;
}

/** A rule by which requests or watches fail: see docs/admin.md of Kubewright. */
export interface FaultRule {
  match?: Match;
  fault: string | Record<string, unknown>;
  /** How often it strikes; 0 is for ever. */
  times?: number;
  /** How many requests pass first. */
  after?: number;
  every?: number;
  probability?: number;
  seed?: number;
}

/** A rule that was added. */
export interface Fault extends FaultRule {
  id: number;
  /** How often it has struck. */
  hits: number;
}

/** The request log. */
export interface Requests {
  /** How often each user agent did what to which resource. */
  counts: Array<{ userAgent: string; verb: string; group?: string; resource: string; count: number }>;
  /** The last requests in full. */
  requests: Array<Record<string, unknown>>;
}

/** The server refused a request to `/kubewright`. */
export class ApiError extends Error {
  /** The HTTP status. */
  readonly status: number;
}

/** A Kubernetes control plane. It ends with {@link Cluster.stop}, and with this process, whatever ends that. */
export class Cluster {
  private constructor();
  /** Starts one. Rejects when there is no program, or when it ends or is not ready in a minute: with what it wrote to standard error. */
  static start(options?: ClusterOptions): Promise<Cluster>;
  /** The path of a kubeconfig of the administrator. It is there as long as the cluster. */
  readonly kubeconfig: string;
  /** The URL of the API server. */
  readonly server: string;
  /** The process. */
  readonly pid: number;
  /** Makes the cluster as it was when it started: objects, faults and the request log. Time does not go back. */
  reset(): Promise<void>;
  /** Cluster time. */
  now(): Promise<Date>;
  /** Lets cluster time pass (`"1h30m"`, or milliseconds), with all that falls due meanwhile. Rejects where the cluster has no clock of its own. */
  advance(by: string | number): Promise<Date>;
  /** Makes requests or watches fail; gives the rule's id. */
  addFault(rule: FaultRule): Promise<number>;
  faults(): Promise<Fault[]>;
  removeFault(id: number): Promise<void>;
  clearFaults(): Promise<void>;
  /** Who called what. Filters are those of {@link Match}, lists with commas between their items, and `limit`. */
  requests(filters?: Record<string, string | number>): Promise<Requests>;
  clearRequests(): Promise<void>;
  /** Ends the cluster, and waits for it. A second call does nothing. */
  stop(): Promise<void>;
}
