import { readFileSync } from "node:fs"
import { join } from "node:path"
import { effect, root } from "../cli/effect.ts"
import { runsIn } from "../cli/crash.ts"
import { differences, killed, twoRuns, uninterrupted, type Victim } from "../cli/multirunCrash.ts"
import { must, type Proof } from "./Proof.ts"

/** A small language model learns from right answers, then from rewards: the example as it stands, with several seeds. */

const example = "examples/reverse-text.yaml"
/** The folder of its run, in that of the trainer. */
const run = "run_letters"

/** Returns the validation scores of a run by step, which `--csv` wrote. */
const validationsOf = (run: string): ReadonlyMap<number, number> =>
  new Map(
    Array.from(
      readFileSync(join(run, "progress.csv"), "utf8").matchAll(/^(\d+),validation\/score,(.+)$/gm),
      ([, step, score]): [number, number] => [Number(step), Number(score)],
    ),
  )

const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? NaN)

const percent = (scores: ReadonlyArray<number>): string => scores.map((score) => (100 * score).toFixed(1)).join(", ")

export const multirun: ReadonlyArray<Proof> = [
  {
    name: "reverse-text",
    claim: `${example}: right answers alone bring a model of random weights to 50 % exact, then GRPO to at least 90 %, seeds 1 to 3`,
    run: async (folder) => {
      const config = readFileSync(join(root, example), "utf8")
      const [last, first] = [numberIn(config, /max_steps: (\d+)/), numberIn(config, /supervised: \{ steps: (\d+)/)]
      const jobs = process.env.PROVE_JOBS ?? "1"
      const command = ["run", example, "--seeds", "1..3", "--jobs", jobs, "--csv", "--results-dir", folder, "--quiet"]
      const { code, stdout, stderr } = await effect([...command, "--json"])
      must(code === 0, stderr)
      const { seeds }: { readonly seeds: ReadonlyArray<{ readonly wallSeconds: number }> } = JSON.parse(stdout)
      const runs = [...runsIn(folder)].sort().map((trainer) => validationsOf(join(trainer, run)))
      must(runs.length === 3, `${runs.length} runs`)
      const scoresAt = (step: number): ReadonlyArray<number> => runs.map((scores) => scores.get(step) ?? NaN)
      const [supervised, reinforced] = [scoresAt(first), scoresAt(last)]
      const seconds = Math.max(...seeds.map(({ wallSeconds }) => wallSeconds)).toFixed(0)
      const seen = `${percent(supervised)} % after ${first} supervised steps, ${percent(reinforced)} % after ${last - first} more of GRPO, at most ${seconds} s`
      const better = reinforced.every((score, at) => score >= 0.9 && score > supervised[at])
      must(supervised.every((score) => score >= 0.5) && better, seen)
      return seen
    },
    curve: ".",
  },
  {
    name: "multirun-crash",
    claim:
      "two runs of a trainer, whose processes are killed with kill -9 at 50 random moments and started again: the weights, samples, progress, scores and curves of an uninterrupted training",
    run: async (folder) => {
      const whole = await uninterrupted(folder, twoRuns(24))
      const kills = new Map<Victim, number>()
      let seed = 0
      for (const { victims, least, more } of [
        { victims: ["trainer"], least: 15, more: {} },
        { victims: ["rank", "trainer"], least: 15, more: { trainer: { ranks: 2 } } },
        { victims: ["orchestrator", "server", "trainer"], least: 20, more: { orchestrators: "outside" } },
      ] as const) {
        for (let left: number = least; left > 0;) {
          seed++
          const campaign = await killed(folder, { seed, kills: left, victims, config: twoRuns(24, more) })
          must(campaign.digest === whole.digest, `seed ${seed}: digest ${campaign.digest}, not ${whole.digest}`)
          const different = differences(whole.left, campaign.left)
          must(different.length === 0, `seed ${seed}: these files differ: ${different.join(", ")}`)
          for (const [victim, count] of campaign.kills) {
            kills.set(victim, (kills.get(victim) ?? 0) + count)
            left -= count
          }
        }
      }
      const counts = [...kills].map(([victim, count]) => `${victim} ${count}`).join(", ")
      return `killed: ${counts}, in ${seed} trainings; ${Object.keys(whole.left).length} files the same each time`
    },
  },
]
