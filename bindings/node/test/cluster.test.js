// What a cluster promises to the tests of others.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { AppsV1Api, BatchV1Api, CoreV1Api, KubeConfig, VersionApi } from "@kubernetes/client-node";
import { ApiError, Cluster } from "kubewright";
import { useCluster } from "kubewright/vitest";
import { afterEach, describe, expect, test } from "vitest";

const cluster = useCluster();
const namespace = "default";
const started = [];

async function start(options) {
  const one = await Cluster.start(options);
  started.push(one);
  return one;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()));
});

function client(api, of = cluster()) {
  const config = new KubeConfig();
  config.loadFromFile(of.kubeconfig);
  return config.makeApiClient(api);
}

async function eventually(what) {
  const until = Date.now() + 30_000;
  for (;;) {
    const found = await what();
    if (found) return found;
    if (Date.now() > until) throw new Error("it does not come");
    await sleep(10);
  }
}

const configMap = (name, data) => ({ namespace, body: { metadata: { name }, data } });

test("an object is created, read, changed and deleted", async () => {
  const core = client(CoreV1Api);
  await core.createNamespacedConfigMap(configMap("a", { key: "1" }));
  await core.replaceNamespacedConfigMap({ name: "a", ...configMap("a", { key: "2" }) });
  expect((await core.readNamespacedConfigMap({ namespace, name: "a" })).data).toEqual({ key: "2" });
  await core.deleteNamespacedConfigMap({ namespace, name: "a" });
  await expect(core.readNamespacedConfigMap({ namespace, name: "a" })).rejects.toMatchObject({ code: 404 });
});

test("a deployment gets pods", async () => {
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } };
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  await client(AppsV1Api).createNamespacedDeployment({ namespace, body: { metadata: { name: "web" }, spec } });
  await eventually(async () => {
    const pods = (await client(CoreV1Api).listNamespacedPod({ namespace })).items;
    return pods.length === 2 && pods.every((pod) => pod.status.phase === "Running");
  });
});

describe.each([1, 2])("turn %i", () => {
  test("a reset removes what the test before made", async () => {
    const names = (await client(CoreV1Api).listNamespacedConfigMap({ namespace })).items.map((one) => one.metadata.name);
    expect(names).not.toContain("left");
    await client(CoreV1Api).createNamespacedConfigMap(configMap("left"));
  });
});

test("a day has twenty-four hourly runs", async () => {
  const own = await start({ clock: "2030-01-01T00:00:00Z,speed=0" });
  expect(await own.now()).toEqual(new Date("2030-01-01T00:00:00Z"));
  const pod = { restartPolicy: "Never", containers: [{ name: "a", image: "busybox" }] };
  const jobTemplate = { spec: { template: { spec: pod } } };
  const spec = { schedule: "0 * * * *", successfulJobsHistoryLimit: 100, jobTemplate };
  const batch = client(BatchV1Api, own);
  await batch.createNamespacedCronJob({ namespace, body: { metadata: { name: "hourly" }, spec } });
  // The controller looks a tenth of a second after a run is due, as Kubernetes' own does.
  expect(await own.advance("24h1s")).toEqual(new Date("2030-01-02T00:00:01Z"));
  expect((await batch.listNamespacedJob({ namespace })).items.length).toBe(24);
  expect(await own.advance(1000)).toEqual(new Date("2030-01-02T00:00:02Z"));
});

test("the machine's clock is not advanced", async () => {
  await expect(cluster().advance("1h")).rejects.toThrow(/clock/);
});

test("a fault strikes as often as it says", async () => {
  const core = client(CoreV1Api);
  await core.createNamespacedConfigMap(configMap("a"));
  const rule = { match: { verbs: ["update"], resource: "configmaps" }, fault: "conflict", times: 1 };
  const id = await cluster().addFault(rule);
  const replace = () => core.replaceNamespacedConfigMap({ name: "a", ...configMap("a") });
  await expect(replace()).rejects.toMatchObject({ code: 409 });
  await replace();
  expect(await cluster().faults()).toMatchObject([{ id, hits: 1 }]);
  await cluster().removeFault(id);
  await expect(cluster().removeFault(id)).rejects.toThrow(ApiError);
  await expect(cluster().addFault({ fault: "nonsense" })).rejects.toMatchObject({ status: 400 });
  await cluster().addFault(rule);
  await cluster().clearFaults();
  expect(await cluster().faults()).toEqual([]);
});

test("the log says who called what", async () => {
  await cluster().clearRequests();
  await client(CoreV1Api).listNamespacedSecret({ namespace });
  expect((await cluster().requests({ verbs: "list", resource: "secrets" })).counts).toMatchObject([{ count: 1 }]);
  await cluster().clearRequests();
  expect((await cluster().requests({ resource: "secrets" })).counts).toEqual([]);
});

test("clusters are apart", async () => {
  const other = await start({ nodes: 3, kubernetesVersion: "1.35" });
  expect(other.server).not.toBe(cluster().server);
  await eventually(async () => (await client(CoreV1Api, other).listNode()).items.length === 3);
  expect((await client(VersionApi, other).getCode()).minor).toBe("35");
});

test("what was stopped is gone and can be stopped again", async () => {
  const own = await Cluster.start({ controllers: [], nodes: 0 });
  await own.stop();
  await own.stop();
  expect(existsSync(own.kubeconfig)).toBe(false);
});

test("a program that does not start says why", async () => {
  await expect(Cluster.start({ controllers: ["deploymnt"] })).rejects.toThrow('there is no controller "deploymnt"');
  await expect(Cluster.start({ controllers: "deployment" })).rejects.toThrow("a list of names");
});

test("a program that is nowhere is told with what to do", async () => {
  const { KUBEWRIGHT, PATH } = process.env;
  try {
    process.env.KUBEWRIGHT = "/nowhere/kubewright";
    await expect(Cluster.start()).rejects.toThrow("the variable KUBEWRIGHT names /nowhere/kubewright");
    delete process.env.KUBEWRIGHT;
    process.env.PATH = "/nowhere";
    await expect(Cluster.start()).rejects.toThrow(/KUBEWRIGHT.*@kubewright\/.*PATH/s);
  } finally {
    Object.assign(process.env, { KUBEWRIGHT, PATH });
  }
});

test("a process that is killed leaves no cluster", async () => {
  const script =
    'import { Cluster } from "kubewright"; const one = await Cluster.start({ controllers: [], nodes: 0 });' +
    "console.log(one.pid); setInterval(() => {}, 1000);";
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const server = Number(await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data)))));
  expect(existsSync(`/proc/${server}`)).toBe(true);
  child.kill("SIGKILL");
  const isGone = () => {
    try {
      return readFileSync(`/proc/${server}/stat`, "utf8").split(") ").at(-1).startsWith("Z");
    } catch {
      return true;
    }
  };
  await eventually(isGone);
});

test("a platform package has the program and says for which machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "kubewright-package-"));
  try {
    const make = (program) => execFileSync(process.execPath, ["scripts/platform-package.mjs", program, folder], { stdio: "pipe" });
    make(process.execPath);
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    expect(manifest).toMatchObject({ name: `@kubewright/linux-${process.arch}`, os: ["linux"], cpu: [process.arch] });
    expect(() => make("package.json")).toThrow(/is no Linux program/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
