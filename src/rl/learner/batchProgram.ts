/** Describes programs that read a batch of rows, such as the update of a learner. It only builds the graphs. */
import { input, reshape } from "../../tensor/graph/ops.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import { sizeOf, type Tensor } from "../../tensor/graph/Tensor.ts"
import type { Recall } from "../model/memory.ts"
import { type Batch, type Column, type Columns, f32 } from "./Batch.ts"

interface BatchOptions<C extends Columns> {
  readonly name: string
  readonly columns: C
  /** The number of sequences in a minibatch, each of `steps` rows. Without a memory, a sequence is one row. */
  readonly sequences: number
  readonly steps?: number
  readonly memorySize?: number
  /**
   * If set, the program runs the graph `count` times, each time on a minibatch of the `rows` sequences that its inputs
   * hold. Otherwise it runs the graph once, on all of them.
   */
  readonly minibatches?: { readonly rows: number; readonly count: number } | undefined
  /** Builds the graph of one minibatch. */
  readonly build: (reader: BatchReader<C>) => BatchProgram
}

/** The inputs of a program that reads a batch. */
interface BatchReader<C> {
  readonly batch: Batch<C>
  /** Returns the name of a column that the graph has read; undefined for another tensor. */
  readonly nameOf: (column: Tensor) => string | undefined
  /** Returns an input for a number that is set once for the whole update, such as the learning rate. */
  readonly scalar: (name: string) => Tensor
  /** The memory (the state of an LSTM) before each sequence; undefined if the actor has none. */
  readonly recall: Recall | undefined
}

interface BatchProgram {
  /** The program's states, and the next value of those that change. */
  readonly states: ProgramSpec["state"]
  readonly outputs: ProgramSpec["outputs"]
  /** A condition: the update ends after a minibatch for which it is false. */
  readonly continueWhile?: Tensor | undefined
}

/** Describes a program over a batch: an update of the weights, or an evaluation of all rows of a rollout. */
export const batchSpec = <C extends Columns>(options: BatchOptions<C>): ProgramSpec => {
  const { name, columns, sequences, steps = 1, memorySize = 0, minibatches } = options
  const scalars: Record<string, Tensor> = {}
  const scalar = (key: string): Tensor => (scalars[key] ??= input(key, []))
  const { batch, inputs, nameOf } = batchInputs(columns, sequences, steps)
  const memory = batchInputs(memoryColumns(memorySize), sequences, steps)
  const { states, outputs, continueWhile } = options.build({
    batch,
    nameOf,
    scalar,
    recall: memorySize === 0 ? undefined : { state: memory.batch.memory, fresh: memory.batch.fresh },
  })
  // The inputs from which each minibatch reads only its own rows.
  const gathered = [
    ...Object.keys(inputs).filter((key) => columns[key].per !== "update"),
    ...Object.keys(memory.inputs),
  ]
  return {
    name,
    inputs: { ...inputs, ...memory.inputs, ...scalars },
    state: states,
    outputs,
    ...(minibatches === undefined
      ? {}
      : {
          minibatches: {
            ...minibatches,
            batch: sequences,
            gathered,
            ...(continueWhile === undefined ? {} : { continueWhile }),
          },
        }),
  }
}

/** Declares the columns that a memory adds: its state before each sequence, and 1 where an episode begins, else 0. */
const memoryColumns = (size: number) => ({ memory: { ...f32(size), per: "sequence" }, fresh: f32() }) as const

/** Returns the columns as tensors. Reading a column the first time makes its input, so unread columns have no input. */
function batchInputs<C extends Columns>(
  columns: C,
  sequences: number,
  steps: number,
): { readonly batch: Batch<C>; readonly inputs: Readonly<Record<string, Tensor>> } & Pick<BatchReader<C>, "nameOf">
function batchInputs(columns: Columns, sequences: number, steps: number): object {
  const inputs: Record<string, Tensor> = {}
  const tensorOf = (name: string, { shape, dtype, per }: Column): Tensor => {
    if (per === "update") return (inputs[name] = input(name, shape, dtype))
    if (per === "sequence" || steps === 1) return (inputs[name] = input(name, [sequences, ...shape], dtype))
    // A row of the input is a whole sequence, because minibatches consist of whole sequences.
    inputs[name] = input(name, [sequences, steps * sizeOf(shape)], dtype)
    return reshape(inputs[name], [sequences * steps, ...shape])
  }
  const read: Record<string, Tensor> = {}
  const batch: Record<string, Tensor> = {}
  for (const [name, column] of Object.entries(columns)) {
    Object.defineProperty(batch, name, {
      enumerable: true,
      get: () => (read[name] ??= tensorOf(name, column)),
    })
  }
  return { batch, inputs, nameOf: (column: Tensor) => Object.keys(read).find((name) => read[name] === column) }
}
