import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "property-tests/**/*.test.ts"],
    reporters: ["default", "./test/house/closingLine.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores are the size that everybody has: more workers only fight for them.
    maxWorkers: 2,
  },
})
