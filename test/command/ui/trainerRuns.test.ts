import { rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { openResults, type ResultsFolder } from "../../../src/command/ui/results-node.ts"
import * as Multirun from "../../../src/trainer/Layout.ts"
import * as Layout from "../../../src/run/Layout.ts"
import { withFolder, write } from "./folder.ts"
import { makeTrainer, writeFound, writeRun } from "./trainer.ts"

const done = Effect.runPromise
const open = (folder: string): Promise<ResultsFolder> => done(openResults(folder))

/** Returns the states of all runs of the only trainer, by name, and the place or the reason. */
const states = ({ index }: ResultsFolder) =>
  Object.fromEntries(
    (index.trainers()[0]?.runs ?? []).map(({ id, state, place, reason }) => [
      id.replace("run_", ""),
      [state, place ?? reason].filter((one) => one !== null).join(": "),
    ]),
  )

describe("the runs of a trainer", () => {
  it("are listed in its place, with the trainer that they belong to; new ones when they begin", () =>
    withFolder(async (folder) => {
      const trainer = makeTrainer(folder)
      const results = await open(folder)
      const paths = async () => {
        await done(results.index.refresh)
        return results.index.runs().map(({ path }) => path)
      }
      assert.deepStrictEqual(await paths(), [trainer])
      const first = writeRun(folder, trainer, "a")
      assert.deepStrictEqual(await paths(), [first])
      const second = writeRun(folder, trainer, "b")
      assert.deepStrictEqual(await paths(), [first, second])
      // A folder that the trainer has not begun is no run yet.
      writeFound(folder, `${trainer}/run_c`, 3)
      assert.deepStrictEqual(await paths(), [first, second])
      const { summary, trainers } = results.index
      assert.deepInclude(summary(first), { trainer, state: "running", steps: 40, totalSteps: null })
      assert.deepInclude(summary(first), {
        name: "words",
        time: "2026-01-31_12-00-00",
        population: { environment: "a", algorithm: "multirun" },
      })
      assert.deepInclude(summary(trainer), { path: trainer, trainer: null })
      assert.deepStrictEqual(
        trainers().map(({ path }) => path),
        [trainer],
      )
      rmSync(join(folder, first), { recursive: true })
      rmSync(join(folder, second), { recursive: true })
      assert.deepStrictEqual(await paths(), [trainer])
    }))

  it("are trained, wait in the order in which they were found, or have ended with a reason", () =>
    withFolder(async (folder) => {
      const trainer = makeTrainer(folder, { maxRuns: 2 })
      const at = (name: string): string => `${trainer}/run_${name}`
      // Found in this order, whatever their names are.
      for (const [place, name] of ["d", "c", "b", "a"].entries()) writeFound(folder, at(name), place + 1)
      for (const [place, name] of ["done", "evicted", "invalid"].entries()) writeFound(folder, at(name), place + 5)
      write(folder, `${at("done")}/${Multirun.finished}`, "100\n")
      write(folder, `${at("evicted")}/${Multirun.evicted}`, "its loss is NaN\n")
      write(folder, `${at("invalid")}/${Multirun.configProblem}`, "orch.yaml:1: expected a number\n")
      write(folder, `${at("empty")}/notes.txt`, "")
      const results = await open(folder)
      await done(results.index.refresh)
      const expected = {
        a: "waiting: 2",
        b: "waiting: 1",
        c: "training",
        d: "training",
        done: "finished",
        empty: "unconfigured",
        evicted: "evicted: its loss is NaN",
        invalid: "invalid: orch.yaml:1: expected a number",
      }
      assert.deepStrictEqual(states(results), expected)
      assert.deepStrictEqual((await done(results.index.refresh)).changed, [])

      // An index becomes free: the first in the queue begins, and the page hears of it.
      write(folder, `${at("d")}/${Multirun.finished}`, "100\n")
      assert.deepStrictEqual((await done(results.index.refresh)).changed.map(({ path }) => path), [trainer]) // prettier-ignore
      assert.deepInclude(states(results), { d: "finished", b: "training", a: "waiting: 1" })

      // More steps than it has finished: it is trained again.
      write(folder, `${at("d")}/${Multirun.configFiles.yaml}`, "max_steps: 200\n")
      await done(results.index.refresh)
      assert.deepInclude(states(results), { d: "training", c: "training", b: "waiting: 1" })

      rmSync(join(folder, trainer, Layout.lock))
      await done(results.index.refresh)
      assert.deepInclude(states(results), { a: "stopped", d: "stopped", done: "finished" })
    }))

  it("that were found by an earlier process wait behind those that this one has found", () =>
    withFolder(async (folder) => {
      const trainer = makeTrainer(folder, { maxRuns: 1 })
      writeFound(folder, `${trainer}/run_new`, 2)
      writeFound(folder, `${trainer}/run_old`, 1)
      write(folder, `${trainer}/run_old/${Multirun.token}`, "run_old 1 5\n")
      const results = await open(folder)
      await done(results.index.refresh)
      assert.deepStrictEqual(states(results), { new: "training", old: "waiting: 1" })
    }))

  it("have curves over their own steps", () =>
    withFolder(async (folder) => {
      const run = writeRun(folder, makeTrainer(folder), "a", { steps: 40 })
      const results = await open(folder)
      const { validation, train } = await done(results.curves.of(run))
      assert.deepStrictEqual([validation.steps, validation.mean], [[0, 20, 40], [0, 0.5, 1]]) // prettier-ignore
      assert.deepStrictEqual([train.steps, train.mean], [[0, 10, 20, 30], [0.25, 0.5, 0.75, 0.75]]) // prettier-ignore
    }))

  it("list their files themselves, and the trainer lists its own", () =>
    withFolder(async (folder) => {
      const trainer = makeTrainer(folder)
      const run = writeRun(folder, trainer, "a")
      const results = await open(folder)
      await done(results.index.refresh)
      const { detailOf } = await import("../../../src/command/ui/detail.ts")
      const filesOf = async (path: string) => {
        const summary = results.index.summary(path)
        assert.isDefined(summary)
        return (await done(detailOf(results, summary))).files.map((file) => file.path)
      }
      assert.include(await filesOf(run), Layout.trainScores)
      assert.deepStrictEqual(
        await filesOf(trainer),
        [Layout.config, Layout.tensorBoard, Layout.lock, Layout.log].sort(),
      )
    }))
})
