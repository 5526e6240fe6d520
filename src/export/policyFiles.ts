import type { NamedTensors } from "../learner/Algorithm.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"
import type { RunningMoments } from "../env/RunningMoments.ts"
import type { Space } from "../env/Space.ts"
import { actorToHeader } from "./cheader.ts"
import { type Bounds, type DenseActor, exampleOf, ExportError, layer, type Normalisation } from "./DenseActor.ts"
import { actorToHdf5 } from "./hdf5.ts"

export interface PolicyFilesOptions {
  readonly name: string
  readonly environment: string
  readonly commit: string
  /** What observations are normalised by. */
  readonly moments: RunningMoments | undefined
  readonly actionSpace: Space
  /** An observation, for the files' own test. */
  readonly example: Float32Array
}

/** A dense policy as plain numbers. */
export const denseActor = (
  { layers, head }: DensePolicy,
  weights: NamedTensors,
  inputs: number,
  normalisation?: Normalisation,
): DenseActor => ({
  inputs,
  layers: layers.map(({ names, activation }) => layer(weights, names, activation)),
  ...(head === undefined ? {} : { head }),
  ...(normalisation === undefined ? {} : { normalisation }),
})

const largest = 3.4028234663852886e38

/** Of real numbers; a choice is for the caller to find among preferences. */
export const boundsOf = (space: Space, { scaled = false }: DensePolicy): Bounds | undefined =>
  space._tag === "Discrete"
    ? undefined
    : {
        low: Float32Array.from(space.low, (bound) => Math.max(bound, -largest)),
        high: Float32Array.from(space.high, (bound) => Math.min(bound, largest)),
        scaled,
      }

const normalisationOf = ({ mean, variance }: RunningMoments, clip?: number): Normalisation => ({
  mean: Float32Array.from(mean),
  deviation: Float32Array.from(variance, (value) => Math.sqrt(value + 1e-8)),
  ...(clip === undefined ? {} : { clip }),
})

/** `checkpoint.h` and `checkpoint.h5` of a policy that is nothing but dense layers; none of any other. */
export const policyFiles = (
  dense: DensePolicy | undefined,
  weights: NamedTensors,
  { name, environment, commit, moments, actionSpace, example }: PolicyFilesOptions,
): Readonly<Record<string, Uint8Array>> => {
  if (dense === undefined) return {}
  const inputs = example.length
  const actorWith = (clip?: number): DenseActor =>
    denseActor(dense, weights, inputs, moments === undefined ? undefined : normalisationOf(moments, clip))
  const header = { ...actorWith(10), bounds: boundsOf(actionSpace, dense) }
  // RLtools' own normalisation has no limit, so its file is without: the same wherever observations stay within it. And
  // its envs take actions from −1 to 1, so there are no bounds either.
  const plain = actorWith()
  return {
    ...unlessRefused("checkpoint.h", () =>
      new TextEncoder().encode(actorToHeader(header, { name, commit, example: exampleOf(header, example) })),
    ),
    ...unlessRefused("checkpoint.h5", () =>
      actorToHdf5(plain, {
        checkpointName: name,
        meta: { environment: { name: environment } },
        example: exampleOf(plain, example),
      }),
    ),
  }
}

/** Where a format has no word for something (RLtools lacks some activations) there is no file, and nothing stops. */
const unlessRefused = (file: string, make: () => Uint8Array): Readonly<Record<string, Uint8Array>> => {
  try {
    return { [file]: make() }
  } catch (error) {
    if (error instanceof ExportError) return {}
    throw error
  }
}
