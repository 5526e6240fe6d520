import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Child } from "../../../src/cli/sweep/child.ts"
import { toSnakeCase } from "../../../src/config/Config.ts"
import { prettyJson } from "../../../src/config/text.ts"

const result = {
  steps: 8,
  episodes: 1,
  meanScore: null,
  meanReturn: null,
  validation: null,
  failedValidations: 0,
  digest: "d".repeat(64),
  wallSeconds: 1,
  stepsPerSecond: 8,
}

/** Stands for `effect run`: writes a run of three files at `path` of its results folder, and prints its result. */
export const trainerOf =
  (path: string) =>
  ({ args }: Child): string => {
    const runDir = join(args[args.indexOf("--results-dir") + 1], path)
    mkdirSync(runDir, { recursive: true })
    writeFileSync(join(runDir, "config.yaml"), "kind: training\n")
    writeFileSync(join(runDir, "metrics.json"), prettyJson(toSnakeCase({ runDir, ...result })))
    writeFileSync(join(runDir, "return.json"), "[]")
    return JSON.stringify({ runDir, ...result })
  }
