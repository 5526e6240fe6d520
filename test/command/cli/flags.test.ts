import { assert, describe, it } from "vitest"
import { allowed, type BoundName, bounds } from "../../../src/base/config/bounds.ts"
import { names, type SubcommandName } from "../../../src/command/cli/subcommands.ts"
import { effect, withFolder } from "./effect.ts"

/** The numbers on the command line, and the rows of the table of bounds that limit them. */
const numbers: Readonly<Record<SubcommandName, Readonly<Record<string, BoundName>>>> = {
  init: {},
  presets: {},
  run: { seed: "seed", jobs: "jobs", "total-steps": "count", ranks: "ranks" },
  tune: { trials: "trials", seed: "seed", workers: "jobs", "total-steps": "count" },
  eval: { episodes: "episodes", step: "countOrNone", seed: "seed" },
  replay: { episode: "index" },
  import: {},
  export: { step: "countOrNone", episodes: "episodes", speed: "rounds" },
  push: { step: "countOrNone" },
  runs: { limit: "listed" },
  ui: { port: "port" },
  serve: {
    port: "port",
    "max-adapters": "adaptersOrNone",
    "max-lora-rank": "adapterRank",
    "max-model-len": "positions",
    slots: "tokenRows",
    "page-size": "page",
    "max-requests": "requests",
    seed: "seed",
  },
  gateway: { port: "port", "max-sessions": "atOnce", "max-calls": "entries", "idle-seconds": "count" },
  openenv: { port: "port", sessions: "atOnce", "idle-seconds": "count", seed: "seed" },
  orchestrate: {},
  worker: { slots: "jobs", prune: "days" },
}

/** The flags without which a command is refused in any case. */
const required: Partial<Record<SubcommandName, ReadonlyArray<string>>> = {
  export: ["--to", "onnx"],
  worker: ["--join", "redis://localhost:1"],
}

describe("numbers on the command line", () => {
  it.each(names)("of `effect %s` are refused outside of their bounds, before anything is done", (name) =>
    withFolder(async (folder) => {
      const { stdout } = await effect([name, "--help"], folder)
      const inHelp = Array.from(stdout.matchAll(/^ *--([a-z-]+) <n>/gm), ([, flag]) => flag)
      assert.sameMembers(Object.keys(numbers[name]), inHelp)
      const words = [name, "x", ...(required[name] ?? [])]
      for (const [flag, row] of Object.entries(numbers[name])) {
        const { least, most } = bounds[row]
        for (const value of [least - 1, most + 1]) {
          const { code, stderr } = await effect([...words, `--${flag}=${value}`], folder)
          const expected = Number.isSafeInteger(value) ? allowed(bounds[row]) : "a whole number"
          assert.strictEqual(code, 2, stderr)
          assert.match(stderr, new RegExp(`^effect: [^\n]*--${flag}: "${value}". Expected: `))
          assert.include(stderr, expected)
          assert.lengthOf(stderr.trim().split("\n"), 1, stderr)
        }
      }
    }),
  )
})
