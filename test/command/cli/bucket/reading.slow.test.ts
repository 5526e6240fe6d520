import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { confinedToBucket } from "../../../../src/command/cli/bucket/confinedBucket.ts"
import { serve } from "../../../../src/command/ui/server-node.ts"
import { effect, type Outcome, program, resultOf, withFolder } from "../effect.ts"
import { bucketServer } from "./inBucket.ts"

const place = "s3://runs/team"

const succeeded = (outcome: Outcome): Outcome => {
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return outcome
}

/** Trains two runs in the bucket and the same two on disk, and runs `body` in the folder of the program. */
const withRuns = (body: (folder: string, runs: ReadonlyArray<string>) => Promise<void>) =>
  Effect.promise(() =>
    withFolder(async (folder) => {
      writeFileSync(
        join(folder, "train.ts"),
        program("checkpoint: { everySteps: 1024 }, validation: { everySteps: 1024, episodes: 4 }"),
      )
      const runs: Array<string> = []
      for (const seed of ["1", "2"]) {
        const args = ["run", "train.ts", "--seed", seed, "--json", "--quiet"]
        runs.push(resultOf(succeeded(await effect([...args, "--results-dir", place], folder))).runDir)
        succeeded(await effect(args, folder))
      }
      await body(folder, runs)
    }),
  )

/** Removes what differs between two runs of the same training: paths, and times. */
const timeless = (line: string): unknown => {
  const { path: _path, time: _time, ...facts } = JSON.parse(line)
  return facts
}

const timelessLines = (outcome: Outcome): ReadonlyArray<unknown> =>
  succeeded(outcome).stdout.trim().split("\n").map(timeless)

describe("a bucket of runs", () => {
  it.live("is listed, shown and compared as a folder is, and a second listing fetches no object again", () =>
    Effect.gen(function* () {
      const { requests } = yield* bucketServer()
      yield* withRuns(async (folder, runs) => {
        const listed = await effect(["runs", place, "--json", "--sort", "seed"], folder)
        assert.deepStrictEqual(
          timelessLines(listed),
          timelessLines(await effect(["runs", "--json", "--sort", "seed"], folder)),
        )
        const paths = listed.stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).path)
        assert.deepStrictEqual(paths, [...runs])

        requests.length = 0
        const again = await effect(["runs", "--results-dir", `${place}/`, "--json", "--sort", "seed"], folder)
        assert.strictEqual(again.stdout, listed.stdout)
        assert.deepStrictEqual(requests, [{ method: "GET", path: "/runs" }])

        const shown = JSON.parse(succeeded(await effect(["runs", "show", runs[1], "--json"], folder)).stdout)
        assert.strictEqual(shown.path, runs[1])
        assert.strictEqual(shown.seed, 2)
        assert.include(JSON.stringify(shown.files), "scores/train/scores.jsonl")
        const latest = succeeded(await effect(["runs", "show", "latest", "--results-dir", place], folder)).stdout
        assert.include(latest, place)
        const differing = await effect(["runs", "diff", ...runs, "--json"], folder)
        const { differences } = JSON.parse(succeeded(differing).stdout)
        assert.include(JSON.stringify(differences), '"key":"seed"')
        const best = await effect(["runs", "best", place, "--by", "steps", "--json"], folder)
        assert.include(runs, JSON.parse(succeeded(best).stdout).run.path)
      })
    }).pipe(Effect.scoped),
  )

  it.live("has runs that are evaluated, exported and replayed as those on disk", () =>
    Effect.gen(function* () {
      const { requests } = yield* bucketServer()
      yield* withRuns(async (folder, runs) => {
        const both = async (args: ReadonlyArray<string>) => {
          const inBucket = succeeded(await effect([...args, "--results-dir", place], folder))
          return [inBucket, succeeded(await effect(args, folder))] as const
        }
        const evaluated = await both(["eval", "latest", "--episodes", "8", "--json"])
        const [there, here] = evaluated.map(resultOf)
        assert.strictEqual(there.runDir, runs[1])
        assert.strictEqual(there.meanReturn, here.meanReturn)
        assert.strictEqual(there.step, 2048)
        assert.include(evaluated[0].stderr, `run: ${runs[1]}`)

        requests.length = 0
        const earlier = await effect(["eval", runs[1], "--step", "1024", "--episodes", "8", "--json"], folder)
        assert.strictEqual(resultOf(succeeded(earlier)).step, 1024)
        const fetched = requests.map(({ path }) => path).filter((path) => path.includes("/checkpoints/step_"))
        assert.isAbove(fetched.length, 0)
        assert.isTrue(
          fetched.every((path) => path.includes("step_000000000001024")),
          fetched.join(" "),
        )
        const wrong = await effect(["eval", runs[1], "--step", "7"], folder)
        assert.strictEqual(wrong.code, 2)
        assert.include(wrong.stderr, `--step 7: ${runs[1]} has no checkpoint of this step; expected one of 1024, 2048`)
        const rendered = await effect(["eval", runs[1], "--render"], folder)
        assert.include(rendered.stderr, "--render does not work with a run in a bucket")

        const replayed = await both(["replay", "latest", "--json", "--quiet"])
        assert.strictEqual(replayed[0].stdout, replayed[1].stdout)
        assert.isTrue(resultOf(replayed[0]).same)

        const exported: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
          ["onnx", ["latest"]],
          ["safetensors", ["latest", "--step", "1024"]],
          // A curve is named by its run's folder, which has the time of its training.
          ["csv", ["0001", "0002", "--label", "one", "--label", "other"]],
        ]
        for (const [to, names] of exported) {
          const files = ["there", "here"].map((name) => `${name}.${to}`)
          const args = ["export", ...names, "--to", to, "--out"]
          succeeded(await effect([...args, files[0], "--results-dir", place], folder))
          succeeded(await effect([...args, files[1]], folder))
          const [there, here] = files.map((file) => readFileSync(join(folder, file)))
          assert.deepStrictEqual(there, here, to)
        }
        // A folder of runs, by its address.
        const folderOfRuns = runs[0].slice(0, runs[0].lastIndexOf("/"))
        succeeded(await effect(["export", folderOfRuns, "--to", "csv", "--out", "folder.csv"], folder))
        succeeded(await effect(["export", "0001", "--to", "csv", "--out", "one.csv"], folder))
        assert.strictEqual(
          readFileSync(join(folder, "folder.csv"), "utf8"),
          readFileSync(join(folder, "one.csv"), "utf8"),
        )
      })
    }).pipe(Effect.scoped),
  )

  it.live("is shown by the page, also as a static site, and new runs appear", () =>
    Effect.gen(function* () {
      const { failing } = yield* bucketServer()
      yield* withRuns(async (folder, runs) => {
        const [run, other] = runs.map((address) => address.slice(place.length + 1))
        const exported = await effect(["ui", place, "--export", "site"], folder)
        assert.match(succeeded(exported).stdout, /^2 runs, \d+ files in site/)
        const read = (name: string) => readFileSync(join(folder, "site", name))
        const listed = JSON.parse(String(read("data/runs.json")))
        assert.sameMembers(
          listed.runs.map(({ path }: { readonly path: string }) => path),
          [run, other],
        )
        assert.isTrue(listed.runs.every(({ state }: { readonly state: string }) => state === "finished"))
        const detail = JSON.parse(String(read(`data/run/${run}/run.json`)))
        assert.isAbove(detail.files.length, 10)
        assert.match(String(read(`files/${run}/scores/train/scores.jsonl`)), /^\{.*\}\n/)
        assert.isAbove(JSON.parse(String(read(`data/run/${run}/curves.json`))).curves?.length ?? 1, 0)

        const single = await effect(["ui", runs[1], "--export", "single"], folder)
        assert.match(succeeded(single).stdout, /^1 run, /)

        const shown = Effect.gen(function* () {
          // The server checks the time of each request.
          yield* TestClock.setTime(Date.now())
          const files = yield* confinedToBucket(place)
          const at = yield* serve({ directory: place, files, host: "127.0.0.1", port: 0, pollEvery: 0 })
          const get = (path: string) => Effect.promise(() => fetch(`http://127.0.0.1:${at.port}/${path}`))
          assert.strictEqual(yield* at.countRuns, 2)
          const page = yield* get("data/runs.json")
          assert.lengthOf(JSON.parse(yield* Effect.promise(() => page.text())).runs, 2)
          const file = yield* get(`files/${run}/config.yaml`)
          assert.include(yield* Effect.promise(() => file.text()), "seed: 1")
          for (const path of ["files/../../etc/passwd", "files/nothing", `files/${run}`])
            assert.strictEqual((yield* get(path)).status, 404, path)

          // A third run appears with the next listing; a bucket that does not answer leaves the page as it is.
          const more = ["run", "train.ts", "--seed", "4", "--quiet", "--results-dir", place]
          succeeded(yield* Effect.promise(() => effect(more, folder)))
          assert.strictEqual(yield* at.countRuns, 2)
          failing(() => ({ status: 403, code: "AccessDenied" }))
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* at.countRuns, 2)
          failing(() => undefined)
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* at.countRuns, 3)
        })
        await Effect.runPromise(
          Effect.scoped(shown).pipe(Effect.provide(TestClock.layer()), Effect.provide(NodeServices.layer)),
        )
      })
    }).pipe(Effect.scoped),
  )
})
