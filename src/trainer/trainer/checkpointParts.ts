/** Encodes the weights and moments of a run as files of its checkpoint, and decodes them. */
import { Effect } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import { inCheckpoint } from "../Layout.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import { TrainerError } from "../TrainerError.ts"

/** The state of a run in a checkpoint besides its progress: the weights, and the optimiser's moments. */
interface RunState {
  readonly weights: NamedTensors
  readonly moments: NamedTensors
}

const files = { weights: inCheckpoint.weights, moments: inCheckpoint.moments } as const

/**
 * Encodes the state of a run.
 */
export const checkpointParts = ({ weights, moments }: RunState): Readonly<Record<string, Uint8Array>> => ({
  [files.weights]: Safetensors.encode(weights),
  [files.moments]: Safetensors.encode(moments),
})

/** Reads the state of a run from the files of a checkpoint. */
export const runStateIn = (parts: Readonly<Record<string, Uint8Array>>): Effect.Effect<RunState, TrainerError> =>
  Effect.gen(function* () {
    return { weights: yield* arraysIn(parts, files.weights), moments: yield* arraysIn(parts, files.moments) }
  })

const arraysIn = (parts: Readonly<Record<string, Uint8Array>>, file: string) =>
  Effect.gen(function* () {
    const refuse = (problem: string) => TrainerError.at(file, problem)
    if (!Object.hasOwn(parts, file))
      return yield* Object.hasOwn(parts, inCheckpoint.tinker)
        ? TrainerError.at(inCheckpoint.tinker, "the weights are on a server; this file has their address")
        : refuse("the file is missing")
    const tensors = yield* Effect.mapError(
      attempt(() => Safetensors.decode(parts[file]), FormatError),
      ({ message }) => refuse(message),
    )
    const named: Record<string, NamedArray> = {}
    for (const [name, { shape, data }] of Object.entries(tensors)) {
      if (!(data instanceof Float32Array)) return yield* refuse(`tensor "${name}": expected float32`)
      named[name] = { shape, data }
    }
    return named
  })
