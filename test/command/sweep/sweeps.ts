import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { fromPath } from "../../../src/run/identifier.ts"
import { runsIn } from "../cli/crash.ts"

/** Gives the folder of each run of a sweep by its identity. All runs are in the folder of one time, each once. */
export const left = (results: string): ReadonlyMap<string, string> => {
  const runs = runsIn(results)
  assert.strictEqual(new Set(runs.map((run) => fromPath(run)?.time)).size, 1)
  const found = new Map(runs.map((run) => [JSON.stringify({ ...fromPath(run), time: "" }), run]))
  assert.strictEqual(found.size, runs.length)
  return found
}

export const finished = (results: string): ReadonlyArray<string> =>
  runsIn(results).filter((run) => existsSync(join(run, "return.json")))

export const digestsOf = (results: string): ReadonlyMap<string, string> =>
  new Map([...left(results)].map(([key, run]) => [key, digestOf(run)]))

const digestOf = (run: string): string => JSON.parse(readFileSync(join(run, "metrics.json"), "utf8")).digest

export const logOf = (run: string): string => readFileSync(join(run, "run.log"), "utf8")
