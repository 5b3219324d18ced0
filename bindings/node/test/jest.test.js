import { useCluster } from "kubewright/jest";

const cluster = useCluster({ controllers: [], nodes: 0 });
let seen;

test("jest has a cluster", async () => {
  seen = cluster().server;
  await cluster().addFault({ fault: "conflict" });
  expect((await cluster().faults()).length).toBe(1);
});

test("it is the same one, reset before each test", async () => {
  expect(cluster().server).toBe(seen);
  expect(await cluster().faults()).toEqual([]);
});
