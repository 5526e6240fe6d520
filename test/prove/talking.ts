import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { resultOf, start, write } from "../command/cli/effect.ts"
import {
  at,
  experiment,
  filesIn,
  jsonOf,
  linesOf,
  runsBelow,
  someFaults,
  withServer,
} from "../command/cli/experiment.ts"
import { killed } from "../command/cli/experimentCrash.ts"
import { compareAgents } from "../command/cli/experimentMemory.ts"
import { must, type Proof } from "./Proof.ts"

/** Proofs of long runs of language-model agents. */

/** The memory of a process over its life, in megabytes. */
const watched = async (args: ReadonlyArray<string>, folder: string) => {
  const { child, ended } = start(args, folder)
  const megabytes: Array<number> = []
  const watch = setInterval(() => {
    const status = `/proc/${child.pid}/status`
    const resident = existsSync(status) ? /VmRSS:\s+(\d+)/.exec(readFileSync(status, "utf8")) : null
    if (resident !== null) megabytes.push(Number(resident[1]) / 1024)
  }, 100)
  const outcome = await ended
  clearInterval(watch)
  return { outcome, megabytes }
}

const numbers = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, index) => index + 1))

const episodesOf = (file: string): string => JSON.stringify(linesOf(file).map(({ episode_index }) => episode_index))

export const talking: ReadonlyArray<Proof> = [
  {
    name: "experiment",
    claim:
      "the experiment of 1,000 envs, a reflexion agent, validations every 50 by 100 workers, over a server that fails one time in twenty: nothing lost or doubled, all retries counted",
    run: async (folder) =>
      withServer({ fault: someFaults(11, 0.05) }, async (server) => {
        write(
          folder,
          "experiment.yaml",
          experiment({
            tasks: 1000,
            heldOut: 100,
            lm: at(server),
            runtime: { validation_freq: 50, checkpoint_every_episodes: 50 },
          }),
        )
        const { outcome, megabytes } = await watched(["run", "experiment.yaml", "--json", "--quiet"], folder)
        must(outcome.code === 0, outcome.stderr)
        const [run] = runsBelow(join(folder, "outputs/my_experiment"))
        must(
          episodesOf(join(run, "scores/train/scores.jsonl")) === numbers(1000),
          "training episodes are lost or doubled",
        )
        const validations = filesIn(run).filter((path) => path.startsWith("scores/val/"))
        must(validations.length === 21, `${validations.length} validations, not 21`)
        for (const path of validations) must(episodesOf(join(run, path)) === numbers(100), `${path}: lost or doubled`)
        const checkpoints = new Set(filesIn(run).flatMap((path) => /checkpoints\/(ep_\d+)\//.exec(path)?.[1] ?? []))
        must([...checkpoints].join() === "ep_000800,ep_000850,ep_000900,ep_000950,ep_001000", [...checkpoints].join())
        const calls = filesIn(run).filter((path) => path.startsWith("llm_calls/"))
        const retries = calls.reduce((sum, path) => sum + jsonOf(join(run, path)).retries, 0)
        const wrong = server.asked.filter(({ fault }) => fault.kind !== "none").length
        const { usage, validation } = jsonOf(join(run, "metrics.json"))
        must(calls.length === 1000 * 2 + 21 * 100, `${calls.length} files of calls`)
        must(
          server.asked.length - wrong === calls.length,
          `${server.asked.length - wrong} answers to ${calls.length} calls`,
        )
        must(
          retries === wrong && usage.retries === wrong,
          `${wrong} faults, ${retries} retries in files, ${usage.retries} in metrics`,
        )
        return `${calls.length} calls, ${wrong} faults, as many retries; validation ${validation.mean_return.toFixed(2)}; peak ${Math.max(...megabytes).toFixed(0)} MB`
      }),
  },
  {
    name: "experiment-crash",
    claim:
      "an experiment killed with kill -9 at ten random moments and resumed each time, ten times over: the scores, memories, rollouts, calls, validations, checkpoints and metrics of one that runs through by the same answers",
    run: async (folder) => {
      let kills = 0
      let files = 0
      for (let round = 1; round <= 10; round++) {
        const { resumed, whole, askedAgain, ...campaign } = await killed(folder, round, 10, { tasks: 200, heldOut: 8 })
        must(askedAgain === 0, `round ${round}: the server was asked again, ${askedAgain} times`)
        for (const path of new Set([...Object.keys(whole), ...Object.keys(resumed)])) {
          must(JSON.stringify(resumed[path]) === JSON.stringify(whole[path]), `round ${round}: ${path} differs`)
        }
        kills += campaign.kills
        files += Object.keys(whole).length
      }
      must(kills >= 95, `only ${kills} kills`)
      return `${kills} kills, ${files} files the same`
    },
  },
  {
    name: "experiment-memory",
    claim:
      "50,000 single-turn episodes: peak memory under 500 MB, and flat in the second half; metrics.json stays small",
    run: async (folder) => {
      const file = experiment({
        tasks: 50_000,
        heldOut: 8,
        lm: { log_calls: false },
        agent: { type: "history_agent", history_k: 10 },
        runtime: { validation_freq: 10_000, checkpoint_every_episodes: 5000 },
      })
      write(folder, "experiment.yaml", file)
      const { outcome, megabytes } = await watched(["run", "experiment.yaml", "--json", "--quiet"], folder)
      must(outcome.code === 0, outcome.stderr)
      const { runDir, steps } = resultOf(outcome)
      must(steps === 50_000, `${String(steps)} steps`)
      const peak = Math.max(...megabytes)
      const [third, last] = [3, 4].map((quarter) =>
        Math.max(...megabytes.slice(((quarter - 1) * megabytes.length) / 4, (quarter * megabytes.length) / 4)),
      )
      must(peak < 500, `peak ${peak} MB`)
      must(last < third * 1.1, `${third} MB in the third quarter, ${last} MB in the last`)
      const kilobytes = statSync(join(folder, runDir, "metrics.json")).size / 1000
      must(kilobytes < 10, `metrics.json has ${kilobytes} kB`)
      return `peak ${peak.toFixed(0)} MB; ${third.toFixed(0)} MB in the third quarter, ${last.toFixed(0)} MB in the last; metrics.json ${kilobytes.toFixed(1)} kB`
    },
  },
  {
    name: "agents",
    claim:
      "on the codebook task with a model that knows nothing by itself: an agent without memory gets nothing, one with a history more, one that reflects most, with each of 5 seeds",
    run: async (folder) => {
      const reached = await compareAgents(folder, [1, 2, 3, 4, 5])
      const { memoryless_agent: memoryless, history_agent: history, reflexion_agent: reflexion } = reached
      const shown = (scores: ReadonlyArray<number>): string => scores.map((score) => score.toFixed(2)).join(", ")
      const found = `memoryless ${shown(memoryless)}; history ${shown(history)}; reflexion ${shown(reflexion)}`
      for (const [index, score] of history.entries()) {
        must(memoryless[index] === 0 && score > 0.2 && reflexion[index] > score, found)
      }
      return found
    },
  },
]
