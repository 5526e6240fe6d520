import { effect, write } from "./effect.ts"
import { experiment } from "./experiment.ts"

const agents = ["memoryless_agent", "history_agent", "reflexion_agent"] as const

/** The scores of each agent on its words in another order, one for each seed of its training tasks. */
export type Reached = Readonly<Record<(typeof agents)[number], ReadonlyArray<number>>>

/**
 * Three agents by `effect run`, with the same model, which answers by what its prompt holds and knows nothing by itself:
 * one that forgets, one that has its history before it, one that notes what it has learnt.
 */
export const compareAgents = async (folder: string, seeds: ReadonlyArray<number>): Promise<Reached> => {
  write(folder, "experiment.yaml", experiment({ tasks: 60, heldOut: 40, runtime: { validation_freq: 60 } }))
  const population = [`agent.type=${agents.join(",")}`, `train_dataset.seed=${seeds.join(",")}`]
  const args = ["run", "experiment.yaml", "--population", ...population, "--jobs", "2", "--results-dir", "results"]
  const { code, stdout, stderr } = await effect([...args, "--json", "--quiet"], folder)
  if (code !== 0) throw new Error(stderr)
  const found: {
    readonly configurations: ReadonlyArray<{
      readonly population: Readonly<Record<string, string | number>>
      readonly seeds: ReadonlyArray<{ readonly score: number }>
    }>
  } = JSON.parse(stdout)
  const of = (agent: string): ReadonlyArray<number> =>
    seeds.map((seed) => {
      const one = found.configurations.find(
        ({ population: has }) => has["agent.type"] === agent && has["train_dataset.seed"] === seed,
      )
      if (one === undefined) throw new Error(`${agent} was not run with seed ${seed}: ${stdout}`)
      return one.seeds[0].score
    })
  return {
    memoryless_agent: of("memoryless_agent"),
    history_agent: of("history_agent"),
    reflexion_agent: of("reflexion_agent"),
  }
}
