import { defineConfig } from "vitest/config";

// Tests of the picture need no DOM; a test of the view asks for one with a comment on its first line.
// The time limit only ends what hangs: how long something takes is measured in bench/, and machines differ.
// Vitest leaves one core free if it is not told otherwise: of two, that is half.
export default defineConfig({
  test: { include: ["test/**/*.test.ts"], environment: "node", testTimeout: 60_000, maxWorkers: "100%" },
});
