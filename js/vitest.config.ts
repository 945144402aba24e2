import { defineConfig } from "vitest/config";

// Tests of the picture need no DOM; a test of the view asks for one with a comment on its first line.
export default defineConfig({ test: { include: ["test/**/*.test.ts"], environment: "node" } });
