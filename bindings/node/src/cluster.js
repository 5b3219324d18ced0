// A control plane in a process of its own.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "./api.js";
import { findProgram } from "./program.js";

const START_TIMEOUT = 60_000;
const STOP_TIMEOUT = 10_000;
/** How much of standard error is kept. */
const KEPT = 64 * 1024;

function words(kubeconfig, { controllers, nodes, kubernetesVersion, clock }) {
  if (typeof controllers === "string") throw new TypeError("controllers is a list of names");
  const all = ["up", "--port=0", "--admin", "--quiet", "--exit-with-stdin", `--kubeconfig=${kubeconfig}`];
  if (controllers !== undefined) all.push(`--controllers=${controllers.join(",")}`);
  if (nodes !== undefined) all.push(`--nodes=${nodes}`);
  if (kubernetesVersion !== undefined) all.push(`--kubernetes-version=${kubernetesVersion}`);
  if (clock !== undefined) all.push(`--clock=${clock}`);
  return all;
}

export class Cluster {
  #folder;
  #process;
  #ended;
  #errors = "";
  #api;

  static async start(options = {}) {
    const cluster = new Cluster(options);
    try {
      await cluster.#awaitKubeconfig();
      cluster.#api = new Api(cluster.kubeconfig);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Use {@link Cluster.start}. */
  constructor(options) {
    const program = findProgram();
    this.#folder = mkdtempSync(join(tmpdir(), "kubewright-"));
    this.kubeconfig = join(this.#folder, "kubeconfig");
    // The server ends when the other end of its standard input is closed, as it is when this process ends.
    this.#process = spawn(program, words(this.kubeconfig, options), { stdio: ["pipe", "ignore", "pipe"], detached: true });
    this.#process.stderr.on("data", (part) => (this.#errors = (this.#errors + part).slice(-KEPT)));
    this.#process.stdin.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      this.#process.on("error", (error) => resolve(error.message));
      this.#process.on("close", (code, signal) => resolve(signal ?? code));
    });
    // A cluster that nobody stops does not keep this process.
    this.#process.unref();
    this.#process.stdin.unref();
    this.#process.stderr.unref();
  }

  async #awaitKubeconfig() {
    const until = Date.now() + START_TIMEOUT;
    let code;
    void this.#ended.then((ended) => (code = ended ?? "no code"));
    // It appears whole.
    while (!existsSync(this.kubeconfig)) {
      const said = () => this.#errors.trim() || "it said nothing";
      if (code !== undefined) throw new Error(`kubewright ended with ${code}: ${said()}`);
      if (Date.now() > until) throw new Error(`kubewright is not ready after ${START_TIMEOUT / 1000} s: ${said()}`);
      await sleep(2);
    }
  }

  get server() {
    return this.#api.server;
  }

  get pid() {
    return this.#process.pid;
  }

  async reset() {
    await this.#api.request("POST", "/reset");
  }

  async now() {
    return new Date((await this.#api.request("GET", "/clock")).now);
  }

  async advance(by) {
    const duration = typeof by === "number" ? `${by}ms` : by;
    return new Date((await this.#api.request("POST", "/clock/advance", { by: duration })).now);
  }

  async addFault(rule) {
    return (await this.#api.request("POST", "/faults", rule)).id;
  }

  async faults() {
    return (await this.#api.request("GET", "/faults")).faults;
  }

  async removeFault(id) {
    await this.#api.request("DELETE", `/faults/${id}`);
  }

  async clearFaults() {
    await this.#api.request("DELETE", "/faults");
  }

  async requests(filters = {}) {
    return this.#api.request("GET", "/requests", undefined, filters);
  }

  async clearRequests() {
    await this.#api.request("DELETE", "/requests");
  }

  async stop() {
    this.#api?.close();
    this.#process.stdin.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_TIMEOUT);
    await this.#ended;
    clearTimeout(timer);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]() {
    await this.stop();
  }
}
