/**
 * `npm run prove`: the proofs that take too long for every test run. Prints a table for `docs/proofs.md`.
 *
 *   npm run prove                             all
 *   npm run prove -- --only NAME[,NAME …]     some
 *   npm run prove -- --write                  writes the table into docs/proofs.md after each proof, and learning curves
 *                                             into docs/algorithms/curves
 *   npm run prove -- --write --missing        only those that the table does not have from this commit, to go on later
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { attackProofs } from "./attacks/attacks.ts"
import { cluster } from "./cluster.ts"
import { learning } from "./learning.ts"
import { multirun } from "./multirun.ts"
import { native } from "./native.ts"
import { must, type Proof } from "./Proof.ts"
import { prompts } from "./prompts.ts"
import { talking } from "./talking.ts"
import { tinker } from "./tinker.ts"
import { tuning } from "./tuning.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { killAndResume, runsIn, scoresOf } from "../command/cli/crash.ts"
import { effect, program, resultOf, root, start, write } from "../command/cli/effect.ts"

const proofs: ReadonlyArray<Proof> = [
  ...learning,
  {
    name: "cold-start",
    claim:
      "from typing `npx effect run examples/cartpole.ts` to a validation return of 475: under 3 s, the median of five seeds",
    run: async (folder) => {
      const seconds: Array<number> = []
      for (const seed of [1, 2, 3, 4, 5]) {
        const began = Date.now()
        execFileSync(
          "npx",
          [
            "effect",
            "run",
            "examples/cartpole.ts",
            "--seed",
            String(seed),
            "--quiet",
            "--results-dir",
            join(folder, String(seed)),
          ],
          {
            cwd: root,
            stdio: "ignore",
          },
        )
        const [run] = runsIn(join(folder, String(seed)))
        const reached = /^(\S+) validation at step \d+: mean return (?:47[5-9]|4[89]\d|500)\./m.exec(
          readFileSync(join(run, "run.log"), "utf8"),
        )
        seconds.push(reached === null ? Infinity : (Date.parse(reached[1]) - began) / 1000)
      }
      const sorted = [...seconds].sort((a, b) => a - b)
      must(sorted[2] < 3, `seconds ${seconds.join(", ")}`)
      return `seconds by seed: ${seconds.map((value) => value.toFixed(2)).join(", ")}`
    },
  },
  {
    name: "memory",
    claim: "500,000 steps of PPO on CartPole: peak memory under 300 MB, and flat",
    run: async (folder) => {
      const file = write(folder, "train.ts", program("").replace("{ nsteps: 32 }", "").replace("2048", "500_000"))
      const { child, ended } = start(["run", file, "--results-dir", join(folder, "results"), "--quiet"])
      const megabytes: Array<number> = []
      const watch = setInterval(() => {
        const status = `/proc/${child.pid}/status`
        const resident = existsSync(status) ? /VmRSS:\s+(\d+)/.exec(readFileSync(status, "utf8")) : null
        if (resident !== null) megabytes.push(Number(resident[1]) / 1024)
      }, 50)
      const { code, stderr } = await ended
      clearInterval(watch)
      must(code === 0, stderr)
      const peak = Math.max(...megabytes)
      const [second, last] = [2, 4].map((quarter) =>
        Math.max(...megabytes.slice(((quarter - 1) * megabytes.length) / 4, (quarter * megabytes.length) / 4)),
      )
      must(peak < 300, `peak ${peak} MB`)
      must(last < second * 1.1, `${second} MB in the second quarter, ${last} MB in the last`)
      return `peak ${peak.toFixed(0)} MB; ${second.toFixed(0)} MB in the second quarter, ${last.toFixed(0)} MB in the last`
    },
  },
  {
    name: "crash",
    claim:
      "killed with kill -9 at ten random moments and resumed each time: the digest and scores of the uninterrupted run",
    run: async (folder) => {
      const settings =
        "totalSteps: 204800, validation: { everySteps: 10000, episodes: 4 }, checkpoint: { everySteps: 2000 }"
      const file = write(folder, "train.ts", program(settings))
      const whole = resultOf(await effect(["run", file, "--results-dir", join(folder, "whole"), "--json", "--quiet"]))
      const random = stream(20, "prove", "crash")
      const further = Array.from({ length: 10 }, () => 1 + random.integer(20))
      const { digest, kills, runDir } = await killAndResume(file, join(folder, "killed"), further)
      must(digest === whole.digest, `digest ${digest}, uninterrupted ${whole.digest}`)
      must(JSON.stringify(scoresOf(runDir)) === JSON.stringify(scoresOf(whole.runDir)), "scores differ")
      must(kills >= 8, `only ${kills} kills`)
      return `${kills} kills, digest ${digest.slice(0, 16)}`
    },
  },
  ...tuning,
  ...talking,
  ...prompts,
  ...multirun,
  ...tinker,
  ...native,
  ...cluster,
  ...attackProofs,
]

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    write: { type: "boolean", default: false },
    missing: { type: "boolean", default: false },
  },
})
const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim()
const commit = git("rev-parse", "--short", "HEAD")
const page = join(root, "docs/proofs.md")
const commandFor = (name: string): string => `npm run prove -- --only ${name}`

/** The rows of the page: what was seen of each proof, by its command. */
const readRows = (): ReadonlyMap<string, string> => {
  const lines = existsSync(page) ? readFileSync(page, "utf8").split("\n") : []
  return new Map(
    lines.flatMap((row) => (/^\|.*\| `(npm run prove [^`]*)` \|/.exec(row) ?? []).slice(1).map((key) => [key, row])),
  )
}

/** Writes the page again with the row of one proof; a row stands until its proof is run again. */
const writeRow = (name: string, row: string): void => {
  const rows = new Map(readRows()).set(commandFor(name), row)
  const table = [
    "# Proofs",
    "",
    "What takes too long for every test run, as last seen. `npm run prove -- --write` writes this page.",
    "",
    "| claim | seen | command | time | commit | date |",
    "| --- | --- | --- | --- | --- | --- |",
    ...proofs.flatMap((proof) => rows.get(commandFor(proof.name)) ?? []),
    "",
  ]
  writeFileSync(page, table.join("\n"))
}

/** Draws the learning curve of these runs, if a page of the docs shows it. */
const drawCurve = async (folder: string, name: string): Promise<void> => {
  const docs = join(root, "docs")
  const picture = join(docs, `algorithms/curves/${name}.svg`)
  const shows = (file: string): boolean =>
    file.endsWith(".md") && readFileSync(join(docs, file), "utf8").includes(`curves/${name}.svg`)
  if (!readdirSync(docs, { recursive: true, encoding: "utf8" }).some(shows)) return
  const { code, stderr } = await effect(["export", ...[...runsIn(folder)].sort(), "--to", "svg", "--out", picture])
  // Without a validation at the same step in all seeds there is no common curve.
  if (code !== 0) console.error(stderr)
}

/** Runs a proof, prints what was seen, and writes it into the page if that was asked for; returns whether it held. */
const prove = async ({ name, claim, run, curve }: Proof): Promise<boolean> => {
  const folder = mkdtempSync(join(root, ".tmp-"))
  const started = performance.now()
  let holds = true
  let seen: string
  try {
    seen = await run(folder)
    if (values.write && curve !== undefined) await drawCurve(join(folder, curve), name)
  } catch (error) {
    holds = false
    seen = `FAILED: ${error instanceof Error ? error.message : String(error)}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(`${name}: ${claim}\n  ${seen} (${seconds} s)`)
  const date = new Date().toISOString().slice(0, 10)
  if (values.write)
    writeRow(name, `| ${claim} | ${seen} | \`${commandFor(name)}\` | ${seconds} s | ${commit} | ${date} |`)
  return holds
}

const names = proofs.map(({ name }) => name)
const wanted = values.only?.split(",") ?? names
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined) {
  console.error(`prove: --only: unknown proof "${unknown}"; expected one of ${names.join(", ")}`)
  process.exit(2)
}
const before = readRows()
const isProved = (name: string): boolean =>
  values.missing && before.get(commandFor(name))?.includes(`| ${commit} |`) === true
const results: Array<boolean> = []
for (const proof of proofs) if (wanted.includes(proof.name) && !isProved(proof.name)) results.push(await prove(proof))
const failed = results.filter((holds) => !holds).length
console.log(`${results.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
