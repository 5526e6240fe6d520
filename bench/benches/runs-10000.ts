import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { timeOf, toPath } from "../../src/run/identifier.ts"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"

const algorithms = ["ppo", "a2c", "sac", "dqn"]
const seeds = 5

/** Makes `count` run folders, five seeds at each start time, with only the files that listing runs reads. */
const makeRuns = async (results: string, count: number): Promise<void> => {
  for (let index = 0; index < count; index++) {
    // Ctrl-C is noticed here.
    await setImmediate()
    const moment = Math.floor(index / seeds)
    const algorithm = algorithms[moment % algorithms.length]
    const seed = index % seeds
    const population = { environment: "CartPole-v1", algorithm }
    const time = timeOf(new Date(Date.UTC(2026, 0, 1) + moment * 60_000))
    const run = join(results, toPath({ time, commit: "0123abc", name: "tune", population, seed }))
    mkdirSync(join(run, "scores/val"), { recursive: true })
    writeFileSync(join(run, "config.yaml"), `seed: ${seed}\nalgorithm:\n  name: ${algorithm}\n  learning_rate: 0.001\n`)
    const validation = { step: 100_352, episodes: 20, mean_return: index % 500, std_return: 0 }
    writeFileSync(join(run, "metrics.json"), JSON.stringify({ steps: 100_352, validation }))
    writeFileSync(join(run, "return.json"), "[]\n")
  }
}

const bin = fileURLToPath(new URL("../../bin/effect.js", import.meta.url))

export default defineBench({
  name: "runs-10000",
  unit: "s",
  higherIsBetter: false,
  about: "`effect runs --where algorithm=ppo --json` over 10,000 runs, the command's start included",
  run: async ({ time }) => {
    const { folder: results, remove } = temporaryFolder()
    try {
      await makeRuns(results, 10_000)
      const list = (...args: ReadonlyArray<string>) => {
        const command = [bin, "runs", results, "--json", ...args]
        return execFileSync(process.execPath, command, { encoding: "utf8", maxBuffer: 2 ** 28 })
      }
      const found = list("--where", "algorithm=ppo").trim().split("\n").length
      if (found !== 2500) throw new Error(`found ${found} runs of 2500`)
      const { seconds } = time(() => list("--where", "algorithm=ppo"))
      const all = time(() => list()).seconds
      const setting = time(() => list("--where", "algorithm.learning_rate<0.01")).seconds
      return { value: seconds, details: { all, setting } }
    } finally {
      remove()
    }
  },
})
