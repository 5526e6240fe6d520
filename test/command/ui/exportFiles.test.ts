/** Tests the files of an exported site, without a browser: checkpoints on request only, and no file that has vanished. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, type FileSystem, type Path } from "effect"
import { assert, describe, it } from "vitest"
import type { RunDetail } from "../../../src/command/ui/detail.ts"
import { type SiteOptions, exportResults, exportSite } from "../../../src/command/ui/exportSite.ts"
import { openResults, type ResultsFolder } from "../../../src/command/ui/results-node.ts"
import type { ListedEpisode } from "../../../src/command/ui/transcripts/Episode.ts"
import { effect } from "../cli/effect.ts"
import { makeRun, withFolder, write } from "./folder.ts"

const weights = ["checkpoints/latest/weights.safetensors", "steps/000000000001000/checkpoint.h5"]
const others = ["steps/000000000001000/trajectories.json", "notes/checkpoints.txt"]

const running = <A, E>(exporting: Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>): Promise<A> =>
  Effect.runPromise(Effect.provide(exporting, NodeServices.layer))

/** Exports one run that has checkpoints; what a body sees of it are its path and the site's folder. */
const exported = (body: (run: string, results: string, site: string) => Promise<void>): Promise<void> =>
  withFolder(async (folder) => {
    const results = join(folder, "results")
    mkdirSync(results)
    const run = makeRun(results)
    for (const file of [...weights, ...others]) write(results, `${run}/${file}`, "{}")
    await body(run, results, join(folder, "site"))
  })

const detailIn = (site: string, run: string): Pick<RunDetail, "files" | "leftOut"> =>
  JSON.parse(readFileSync(join(site, `data/run/${run}/run.json`), "utf8"))

const listedIn = (site: string, run: string) => detailIn(site, run).files.map(({ path }) => path)

const episode: ListedEpisode = {
  key: "train-1",
  group: "train",
  phase: "train",
  seen: null,
  contestant: null,
  number: 1,
  id: null,
  env: "a",
  agent: null,
  player: null,
  return: 1,
  length: 1,
  ending: null,
  reason: null,
  failed: null,
  trained: null,
  delegated: 0,
}

describe("an exported site", () => {
  it("is of a single run where a run's folder is exported", { tags: "slow" }, () =>
    exported(async (run, results, site) => {
      makeRun(results, { seed: 2 })
      const done = await running(exportSite(join(results, run), site))
      assert.strictEqual(done.runs, 1)
      assert.include(listedIn(site, "0001"), "config.yaml")
      assert.isTrue(existsSync(join(site, "files/0001/config.yaml")))
    }),
  )

  it.for([
    [{}, [false, true], weights.length],
    [{ checkpoints: true }, [true, true], 0],
  ] as const)("with %j has its files, checkpoints only when asked for", ([options, [hasWeights, hasOthers], leftOut]) =>
    exported(async (run, results, site) => {
      const done = await running(exportSite(results, site, options satisfies SiteOptions))
      assert.strictEqual(done.leftOut, leftOut)
      for (const file of weights) assert.strictEqual(existsSync(join(site, "files", run, file)), hasWeights, file)
      for (const file of others) assert.strictEqual(existsSync(join(site, "files", run, file)), hasOthers, file)
      const listed = listedIn(site, run).filter((path) => [...weights, ...others].includes(path))
      assert.sameMembers(listed, hasWeights ? [...weights, ...others] : others)
      assert.strictEqual(detailIn(site, run).leftOut, leftOut)
    }),
  )

  it.for([
    ["checkpoint:\n  dir: models/\n", "models/step_000000000000010/weights.safetensors"],
    ["runtime:\n  checkpoint_dir: ./kept\n", "kept/ep_000001/agent.json"],
    ["runtime:\n  checkpoint_dir: RUN/kept\n", "kept/ep_000001/agent.json"],
    ["checkpoint:\n  dir: .\n", "step_000000000000010/weights.safetensors"],
  ] as const)("leaves out the checkpoints of a run whose config says %j", ([config, file]) =>
    exported(async (run, results, site) => {
      rmSync(join(results, run, "checkpoints"), { recursive: true })
      write(results, `${run}/config.yaml`, config.replace("RUN", join(results, run)))
      write(results, `${run}/${file}`, "{}")
      const done = await running(exportSite(results, site))
      assert.strictEqual(done.leftOut, 2)
      assert.isFalse(existsSync(join(site, "files", run, file)))
      assert.include(listedIn(site, run), "scores/train/scores.jsonl")
    }),
  )

  it("has no file that a server could send as a page or a script, and lists each by its own name", () =>
    exported(async (run, results, site) => {
      const page = "<script>stolen = true</script>"
      const active = "html htm xhtml xml xsl svg svgz mht mhtml js mjs wasm pdf swf php shtml jsp css webmanifest hta".split(" ") // prettier-ignore
      const names = [...active.map((type) => `notes/evil.${type}`), "EVIL.HTML", "evil.html.h5", "evil.html.gz", "evil", "web.config"] // prettier-ignore
      for (const name of names) write(results, `${run}/${name}`, "stolen = true")
      write(results, `${run}/EVIL.HTML.txt`, "a note")
      const documents = ["a.txt", "b.json", "c.safetensors", "d.png"]
      const starts = [page, "\n <!doctype html>", "\ufeff<?xml version='1.0'?><html/>", "%PDF-1.7"]
      for (const [at, name] of documents.entries()) write(results, `${run}/${name}`, starts[at])
      write(results, `${run}/steps/000000000001000/episode.svg`, "<svg xmlns='http://www.w3.org/2000/svg'/>")
      // An earlier version copied the files by their own names.
      const folder = join(site, "files", run)
      write(site, `files/${run}/notes/evil.html`, "stolen = true")
      write(site, `data/run/${run}/run.json`, JSON.stringify({ files: [{ path: "notes/evil.html", size: 13 }] }))
      write(site, "data/runs.json", "")
      const done = await running(exportSite(results, site))
      assert.deepStrictEqual([done.documents, done.removed], [documents.length, 1])
      const files: ReadonlyArray<{ path: string; copy?: string }> = detailIn(site, run).files
      const copies = new Map(files.map(({ path, copy }) => [path, copy]))
      for (const name of names) assert.match(copies.get(name) ?? "", /\.txt$/, name)
      assert.strictEqual(copies.get("EVIL.HTML"), "EVIL.HTML.txt.txt")
      assert.strictEqual(copies.get("steps/000000000001000/episode.svg"), "steps/000000000001000/episode.svg.txt")
      for (const name of documents) assert.isFalse(copies.has(name) || existsSync(join(folder, name)), name)
      for (const { path, copy = path } of files) assert.isTrue(existsSync(join(folder, copy)), copy)
      assert.strictEqual(new Set(files.map(({ path, copy = path }) => copy)).size, files.length)
      const inSite = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
      assert.deepStrictEqual(inSite.map(({ name }) => name).filter((name) => !/\.(?:txt|jsonl?|yaml|log)$/.test(name)), []) // prettier-ignore
    }))

  it("over one with checkpoints removes these, and nothing that the earlier export did not write", () =>
    exported(async (run, results, site) => {
      const first = await running(exportSite(results, site, { checkpoints: true }))
      assert.strictEqual(first.removed, 0)
      const folder = join(site, "files", run)
      write(folder, "checkpoints/mine.txt", "a note of the reader")
      write(folder, weights[1], "changed since")
      const second = await running(exportSite(results, site))
      assert.deepStrictEqual([second.removed, second.kept], [1, 1])
      assert.isFalse(existsSync(join(folder, "checkpoints/latest")))
      assert.isTrue(existsSync(join(folder, "checkpoints/mine.txt")))
      assert.isTrue(existsSync(join(folder, weights[1])))
      for (const file of others) assert.isTrue(existsSync(join(folder, file)), file)
    }))

  it("removes nothing outside of the run's copied files, whatever the earlier export's list says", () =>
    exported(async (run, results, site) => {
      await running(exportSite(results, site, { checkpoints: true }))
      const outside = "checkpoints/../../../../secret"
      write(site, "secret", "{}")
      write(site, "elsewhere/weights", "{}")
      const files = [outside, "checkpoints/link/weights"].map((path) => ({ path, size: 2 }))
      write(site, `data/run/${run}/run.json`, JSON.stringify({ files }))
      symlinkSync(join(site, "elsewhere"), join(site, "files", run, "checkpoints/link"))
      const done = await running(exportSite(results, site))
      assert.deepStrictEqual([done.removed, done.kept], [0, 1])
      assert.isTrue(existsSync(join(site, "secret")) && existsSync(join(site, "elsewhere/weights")))
    }))

  it("is what --checkpoints is for", async () => {
    const { code, stderr } = await effect(["ui", "test", "--checkpoints"])
    assert.deepStrictEqual([code, stderr], [2, "effect: --checkpoints only works with --export\n"])
  })

  it("skips a file that a run removes while it is copied, and does not list it", () =>
    exported(async (run, results, site) => {
      const opened = await Effect.runPromise(openResults(results))
      const vanishing: ResultsFolder = {
        ...opened,
        files: {
          ...opened.files,
          locate: (path) =>
            Effect.map(opened.files.locate(path), (real) => {
              if (real?.endsWith("trajectories.json") === true) rmSync(real)
              return real
            }),
        },
      }
      await running(exportResults(vanishing, site, {}))
      const listed = listedIn(site, run)
      assert.include(listed, "notes/checkpoints.txt")
      assert.notInclude(listed, "steps/000000000001000/trajectories.json")
    }))

  it("skips an episode whose lines are gone when it is read", () =>
    exported(async (run, results, site) => {
      const opened = await Effect.runPromise(openResults(results))
      const vanishing: ResultsFolder = {
        ...opened,
        transcripts: {
          page: () =>
            Effect.succeed({ total: 1, matching: 1, groups: [], largest: null, from: 0, episodes: [episode] }),
          one: () => Effect.succeed(undefined),
        },
      }
      await running(exportResults(vanishing, site, {}))
      assert.isFalse(existsSync(join(site, `data/run/${run}/episodes/train-1.json`)))
      assert.isTrue(existsSync(join(site, "data/runs.json")))
    }))
})
