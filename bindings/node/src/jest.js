import { fixture } from "./fixture.js";

const { afterAll, beforeAll, beforeEach } = globalThis;
if (!beforeAll) throw new Error("kubewright/jest is for tests that jest runs, with its globals");

export const useCluster = fixture({ beforeAll, beforeEach, afterAll });
