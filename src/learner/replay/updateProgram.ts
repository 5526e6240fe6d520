import { Record, Struct } from "effect"
import type { Layout } from "../../graph/Parameters.ts"
import type { ProgramSpec } from "../../graph/Program.ts"
import type { Task } from "../Algorithm.ts"
import { netOf } from "../descent.ts"
import { batchSpec } from "../programs.ts"
import { type NamedNet, type PerNetwork, type ReplayDefinition, replayColumns } from "./definition.ts"

/** The name of the state that holds the weights of a network's target network. */
export const targetOf = (name: string): string => `target.${name}`

/** The name of an update's output that holds the error of each transition. */
export const errorsOutput = "errors"

/** The program of an update: transitions in, new weights and metrics out, once for each gradient step. */
export const updateSpec = <N extends string, T extends N | "actor", S extends string>(
  { name, config, noiseSize, update, scalars, targets }: ReplayDefinition<N, T, S>,
  layouts: PerNetwork<N, Layout>,
  task: Task,
): ProgramSpec => {
  const { batchSize, gradientSteps, prioritised } = config
  const namedNet = (layout: Layout, key: string): NamedNet => ({ name: key, ...netOf(layout, key) })
  return batchSpec({
    name: `${name}.update`,
    columns: replayColumns(task, noiseSize),
    sequences: batchSize,
    minibatches: gradientSteps === 1 ? undefined : { rows: batchSize * gradientSteps, count: gradientSteps },
    build: ({ batch, scalar }) => {
      const copies = Record.map(layouts, (layout, key) => namedNet(layout, targetOf(key)))
      const { states, metrics, errors } = update({
        batch,
        networks: Record.map(layouts, namedNet),
        targets: Struct.pick(copies, targets),
        scalars: Record.map(scalars, (_, key) => scalar(key)),
      })
      return {
        states: {
          ...Object.fromEntries(targets.map((key) => [targetOf(key), { tensor: copies[key].theta }])),
          ...states,
        },
        outputs: { ...metrics, ...(prioritised && errors !== undefined ? { [errorsOutput]: errors } : {}) },
      }
    },
  })
}
