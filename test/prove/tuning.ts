import { existsSync, readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { runsIn } from "../command/cli/crash.ts"
import { effect, start, write } from "../command/cli/effect.ts"
import { must, type Proof } from "./Proof.ts"

const training = `import { Acrobot, Ppo, Train } from "effect-rl"
export default Train.run({
  env: Acrobot.env,
  numEnvs: 16,
  algorithm: Ppo.make(),
  totalSteps: 65536,
  validation: { everySteps: 8192, episodes: 20 },
})
`

const space = `trials: 60
parallel: 2
pruner: { name: asha, min_steps: 8192 }
parameters:
  algorithm.learning_rate: { log_uniform: [1e-4, 1e-2] }
  algorithm.epochs: { int: [1, 10] }
  algorithm.nsteps: { choice: [32, 64, 128] }
  algorithm.lambda: { uniform: [0.8, 1], step: 0.05 }
  algorithm.entropy_coefficient: { log_uniform: [1e-4, 3e-2] }
`

/** The folder of the only study in a results folder; undefined before there is one. */
const studyIn = (results: string): string | undefined =>
  existsSync(results)
    ? readdirSync(results)
        .map((name) => join(results, name))
        .find((folder) => existsSync(join(folder, "study.yaml")))
    : undefined

const read = (study: string | undefined, name: string): string =>
  study !== undefined && existsSync(join(study, name)) ? readFileSync(join(study, name), "utf8") : ""
const trialsIn = (results: string): number => read(studyIn(results), "trials.jsonl").split("\n").length - 1

/** Runs a study that is killed, with all its runs, when these numbers of trials have ended and another one has begun. */
const killed = async (args: ReadonlyArray<string>, results: string, at: ReadonlyArray<number>): Promise<number> => {
  let kills = 0
  for (const count of at) {
    const resume = studyIn(results) === undefined ? [] : ["--resume", "latest"]
    const { child, ended } = start([...args, ...resume, "--quiet"], undefined, { detached: true })
    let over = false
    void ended.then(() => (over = true))
    while (!over && !(trialsIn(results) >= count && runsIn(results).length > trialsIn(results))) await sleep(20)
    if (child.pid !== undefined && !over) process.kill(-child.pid, "SIGKILL")
    const { signal, stderr } = await ended
    must(signal === "SIGKILL", stderr)
    kills++
  }
  const { code, stderr } = await effect([...args, "--resume", "latest", "--workers", "1", "--quiet"])
  must(code === 0, stderr)
  return kills
}

export const tuning: ReadonlyArray<Proof> = [
  {
    name: "tune-acrobot",
    claim:
      "effect tune finds a better PPO for Acrobot than the defaults within 60 trials of 65,536 steps, by the mean return with ten other seeds; killed with kill -9 three times on the way, it has the trials and the best settings of an uninterrupted study",
    run: async (folder) => {
      const file = write(folder, "acrobot.ts", training)
      const args = ["tune", file, "--space", write(folder, "space.yaml", space)]
      const whole = join(folder, "whole")
      const outcome = await effect([...args, "--workers", "1", "--results-dir", whole, "--quiet", "--json"])
      must(outcome.code === 0, outcome.stderr)
      const { best, pruned }: { best: { value: number; params: Readonly<Record<string, unknown>> }; pruned: number } =
        JSON.parse(outcome.stdout)

      const again = join(folder, "again")
      const kills = await killed([...args, "--results-dir", again], again, [3, 7, 12])
      for (const name of ["trials.jsonl", "best.yaml"])
        must(read(studyIn(again), name) === read(studyIn(whole), name), `${name} differs after ${kills} kills`)

      const scoreOf = async (name: string, more: ReadonlyArray<string>): Promise<number> => {
        const command = ["run", file, "--seeds", "101..110", "--jobs", "1", "--results-dir", join(folder, name)]
        const { code, stdout, stderr } = await effect([...command, "--quiet", "--json", ...more])
        must(code === 0, stderr)
        return JSON.parse(stdout).score.mean
      }
      const tuned = await scoreOf("tuned", ["--config", join(studyIn(whole) ?? "", "best.yaml")])
      const defaults = await scoreOf("defaults", [])
      const settings = Object.entries(best.params).map(([path, value]) => `${path.slice(path.lastIndexOf(".") + 1)} ${String(value)}`) // prettier-ignore
      const seen = `${tuned.toFixed(1)} (${settings.join(", ")}) against ${defaults.toFixed(1)} with the defaults; ${pruned} of 60 trials pruned; ${kills} kills, the same trials`
      must(tuned > defaults, seen)
      return seen
    },
  },
]
