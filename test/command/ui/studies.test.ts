import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { exportSite } from "../../../src/command/ui/exportSite.ts"
import { openResults } from "../../../src/command/ui/results-node.ts"
import { readStudyIn, studiesOf } from "../../../src/command/ui/studies.ts"
import { makeRun, withFolder, write } from "./folder.ts"
import { makeStudy } from "./study.ts"

const opened = async (folder: string) => {
  const results = await Effect.runPromise(openResults(folder))
  await Effect.runPromise(results.index.refresh)
  return results
}

describe("the studies of a results folder", () => {
  it("are found by their runs, and have their trials from the best to the worst", () =>
    withFolder(async (folder) => {
      makeRun(folder)
      const { path, runs } = makeStudy(folder)
      const { index, files } = await opened(folder)
      assert.deepStrictEqual([...studiesOf(index.runs())], [path])
      const study = await Effect.runPromise(readStudyIn(files, path))
      assert(study !== undefined)
      const { name, total, metric, pruner, trials, ranking, importance, space } = study
      assert.deepStrictEqual({ name, total, metric, pruner }, { name: "tune", total: 20, metric: "validation", pruner: "asha" }) // prettier-ignore
      assert.deepStrictEqual(ranking, [7, 3, 10, 6, 2, 5, 1, 8, 0, 9, 4, 11])
      assert.deepStrictEqual(trials[7].runs, [runs[7]])
      assert.deepStrictEqual(space.map((one) => one.path), ["algorithm.learning_rate", "algorithm.hidden"]) // prettier-ignore
      assert.strictEqual(importance[0].path, "algorithm.learning_rate")
    }))

  it("are read from the study's own folder, too, and a folder without study.yaml is none", () =>
    withFolder(async (folder) => {
      const { path } = makeStudy(folder)
      const { index, files } = await opened(join(folder, path))
      assert.deepStrictEqual([...studiesOf(index.runs())], [""])
      assert.strictEqual((await Effect.runPromise(readStudyIn(files, "")))?.trials.length, 12)
      assert.isUndefined(await Effect.runPromise(readStudyIn(files, "nowhere")))
      write(folder, `${path}/study.yaml`, "study: 7\n")
      assert.isUndefined(await Effect.runPromise(readStudyIn(files, "")))
    }))

  it("are a part of an exported site", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      const { path } = makeStudy(results)
      await Effect.runPromise(Effect.provide(exportSite(results, join(folder, "site")), NodeServices.layer))
      const file = join(folder, `site/data/study/${path}/study.json`)
      assert.isTrue(existsSync(file))
      assert.strictEqual(JSON.parse(readFileSync(file, "utf8")).trials.length, 12)
    }),
  )
})
