import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["test/**/*.test.js"], exclude: ["test/jest.test.js"], testTimeout: 60_000 } });
