import { afterAll, beforeAll, beforeEach } from "vitest";
import { fixture } from "./fixture.js";

export const useCluster = fixture({ beforeAll, beforeEach, afterAll });
