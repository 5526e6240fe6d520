import { mkdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { stream } from "../../../src/base/rng/Rng.ts"
import { resultOf, effect, start, write } from "./effect.ts"
import { at, comparable, experiment, runsBelow, someFaults, type Wanted, withServer } from "./experiment.ts"

/** The outcome of a campaign of kills. */
export interface Crashed {
  readonly kills: number
  /** Everything that the run left, and what an uninterrupted one left. */
  readonly resumed: Readonly<Record<string, unknown>>
  readonly whole: Readonly<Record<string, unknown>>
  readonly asked: number
  /** Times that the uninterrupted one asked the server, which it must not. */
  readonly askedAgain: number
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/**
 * Kills an experiment at random events and resumes it every time, until it was killed so often; then lets it finish, and
 * runs another one by the answers that the first was given.
 */
export const killed = (within: string, seed: number, kills: number, wanted: Wanted): Promise<Crashed> =>
  withServer({ fault: someFaults(seed, 0.05) }, async (server) => {
    const folder = join(within, `campaign-${seed}`)
    mkdirSync(folder)
    // About as many answers apart that there are enough for all of them.
    const { tasks = 40 } = wanted
    const every = Math.floor((2 * tasks) / kills)
    const random = stream(seed, "prove", "experiment")
    const file = (cache: string): string =>
      write(
        folder,
        `${cache}.yaml`,
        experiment({
          ...wanted,
          lm: { ...at(server), cache, ...wanted.lm },
          output: { results_dir: cache, save_rollouts: true, save_memory_every: 10 },
        }),
      )
    const recorded = file("record")
    const results = join(folder, "record")
    const args = ["run", recorded, "--quiet", "--json"]
    const logged = (): number => runsBelow(results).reduce((bytes, run) => bytes + sizeOf(join(run, "run.log")), 0)
    let count = 0
    while (count < kills) {
      const [run] = runsBelow(results)
      const askedBefore = server.asked.length
      const loggedBefore = logged()
      const { child, ended } = start(run === undefined ? args : [...args, "--resume", run], folder)
      let over = false
      void ended.then(() => (over = true))
      // Some are killed as soon as the log says that they have begun, most some answers later. A cached one isn't asked again.
      const further = random.uniform() < 0.2 ? 0 : 1 + random.integer(2 * every)
      const hasCome = (): boolean =>
        further === 0 ? logged() > loggedBefore : server.asked.length >= askedBefore + further
      while (!over && !hasCome()) await sleep(1)
      child.kill("SIGKILL")
      const { signal, code, stderr } = await ended
      if (signal !== "SIGKILL" && code !== 0) throw new Error(stderr)
      if (signal !== "SIGKILL") break
      count++
    }
    const [run] = runsBelow(results)
    const resumed = await effect([...args, "--resume", run], folder)
    if (resumed.code !== 0) throw new Error(resumed.stderr)
    const asked = server.asked.length
    const whole = await effect(["run", file("replay"), "--quiet", "--json"], folder)
    if (whole.code !== 0) throw new Error(whole.stderr)
    return {
      kills: count,
      resumed: { ...comparable(run), digest: resultOf(resumed).digest },
      whole: { ...comparable(join(folder, resultOf(whole).runDir)), digest: resultOf(whole).digest },
      asked,
      askedAgain: server.asked.length - asked,
    }
  })
