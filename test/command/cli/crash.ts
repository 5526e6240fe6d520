import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { effect, resultOf, start } from "./effect.ts"

/** A training that was killed and resumed again and again, until it was finished. */
export interface Campaign {
  readonly digest: string
  readonly kills: number
  readonly runDir: string
}

/** The folders of all runs below one: {TIME}/{HEADING}/{CONFIG}/{SEED}. What is in a run comes and goes while it runs. */
export const runsIn = (results: string): ReadonlyArray<string> => {
  let folders = existsSync(results) ? [results] : []
  for (let depth = 0; depth < 4; depth++) {
    folders = folders.flatMap((folder) =>
      readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(folder, entry.name)),
    )
  }
  return folders.filter((folder) => existsSync(join(folder, "config.yaml")))
}

const linesOf = (file: string): number => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0)

/** The lines of scores that a run has written; none before its first checkpoint, from which alone it can be resumed. */
const linesOfScores = (run: string): number =>
  existsSync(join(run, "checkpoints/latest")) ? linesOf(join(run, "scores/train/scores.jsonl")) : 0

/**
 * Starts a training and kills it once it has written so many more lines of scores, resuming it every time; then lets it
 * finish.
 */
export const killAndResume = async (
  file: string,
  results: string,
  further: ReadonlyArray<number>,
): Promise<Campaign> => {
  const args = ["run", file, "--results-dir", results, "--quiet", "--json"]
  let kills = 0
  for (const lines of further) {
    const [run] = runsIn(results)
    const wanted = lines + (run === undefined ? 0 : linesOfScores(run))
    const { child, ended } = start(run === undefined ? args : [...args, "--resume", run])
    let over = false
    void ended.then(() => (over = true))
    while (!over && !runsIn(results).some((one) => linesOfScores(one) >= wanted)) await sleep(1)
    child.kill("SIGKILL")
    const { signal, stderr, code } = await ended
    if (signal !== "SIGKILL" && code !== 0) throw new Error(stderr)
    if (signal === "SIGKILL") kills++
    else break
  }
  const [run] = runsIn(results)
  const outcome = await effect([...args, "--resume", run])
  if (outcome.code !== 0) throw new Error(outcome.stderr)
  return { digest: resultOf(outcome).digest, kills, runDir: run }
}

/** A score file without what depends on the clock. */
export const scoresOf = (runDir: string): ReadonlyArray<unknown> =>
  readFileSync(join(runDir, "scores/train/scores.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => ({ ...JSON.parse(line), timestamp: undefined }))

/** Converts the keys of a file to camelCase, as `--json` prints them. */
export const inCamelCase = (data: unknown): Readonly<Record<string, unknown>> =>
  JSON.parse(
    JSON.stringify(data).replace(/"(\w+)":/g, (key) => key.replace(/_([a-z])/g, (_, a: string) => a.toUpperCase())),
  )
