import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { stream } from "../../../src/base/rng/Rng.ts"
import { runsIn } from "./crash.ts"
import { effect, resultOf, start } from "./effect.ts"

export const textOf = (run: string, file: string): string =>
  existsSync(join(run, file)) ? readFileSync(join(run, file), "utf8") : ""

/** Counts the answers in the journal of a run that learns prompts. */
export const answersIn = (run: string | undefined): number =>
  run === undefined ? 0 : textOf(run, "prompts.jsonl").split("\n").length - 1

interface Campaign {
  /** The words of the command, without the results folder. */
  readonly args: ReadonlyArray<string>
  readonly results: string
  readonly kills: number
  /** The number of answers of a run that is not killed. */
  readonly answers: number
  readonly seed: number
}

/**
 * Runs a search for better prompts. Kills it when its journal has as many answers as was drawn, resumes it each time, and at
 * last lets it finish. Returns its folder and its result.
 */
export const killedAndResumed = async ({ args, results, kills, answers, seed }: Campaign) => {
  const order = stream(seed, "prove", "prompts").permutation(new Int32Array(answers))
  const moments = [...order.subarray(0, kills)].sort((a, b) => a - b)
  const words = [...args, "--results-dir", results, "--quiet", "--json"]
  for (const moment of moments) {
    const [run] = runsIn(results)
    const { child, ended } = start(run === undefined ? words : [...words, "--resume", run])
    let over = false
    void ended.then(() => (over = true))
    while (!over && answersIn(runsIn(results)[0]) < moment) await sleep(1)
    child.kill("SIGKILL")
    const { signal, stderr } = await ended
    if (signal !== "SIGKILL") throw new Error(`it ended before ${moment} answers: ${stderr}`)
  }
  const [run] = runsIn(results)
  const outcome = await effect([...words, ...(run === undefined ? [] : ["--resume", run])])
  if (outcome.code !== 0) throw new Error(outcome.stderr)
  return { run: runsIn(results)[0], result: resultOf(outcome) }
}
