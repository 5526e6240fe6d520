import { defineConfig } from "vitest/config"

const tests = ["test/**/*.test.ts", "property-tests/**/*.test.ts"]
const slow = ["**/*.slow.test.ts"]

export default defineConfig(({ mode }) => ({
  test: {
    // By `--mode all`, the processes that tests start run the package, which loads faster than the sources.
    globalSetup: mode === "all" ? ["./test/package/started.ts"] : [],
    reporters: ["default", "./test/house/closingLine.ts", "./test/house/watchdog.ts"],
    setupFiles: [
      "./test/house/compileCache.ts",
      "./test/house/seeds.ts",
      "./test/house/ownSettings.ts",
      "./test/house/assertions.ts",
    ],
    // By `--mode all` the laws are tried with other inputs each time; else with a tenth of them, always the same. Trainings of a second would
    // spend most of it on compiling wide vectors, which have the same bits: the tests of these vectors ask for them. So do the tests
    // of machine code, which a slow machine would else compile in the background of tests.
    env: {
      EFFECT_RL_NATIVE: "0",
      ...(mode === "all" ? {} : { PROPERTY_SEED: "1", PROPERTY_TRIES: "tenth", EFFECT_RL_WIDE: "0" }),
    },
    tags: [{ name: "slow", description: "What `npm test` leaves to `npm run test:all`, in a file that it runs." }],
    projects: [
      { extends: true, test: { name: "quick", include: tests, exclude: slow } },
      { extends: true, test: { name: "slow", include: slow } },
    ],
    // Node strips the types of our sources by itself, and all files of a worker share one copy of the library.
    experimental: { viteModuleRunner: false },
    isolate: false,
    // Threads have no working directory of their own, which tests of the command need.
    pool: "forks",
    // Two cores are the size that everybody has: more workers only fight for them.
    maxWorkers: 2,
    // A slow machine is no failure. The watchdog ends a test that hangs.
    testTimeout: 0,
    hookTimeout: 0,
  },
}))
