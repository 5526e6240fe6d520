/**
 * Makes the files `checkpoint.h` (C++) and `checkpoint.h5` (RLtools) of a policy that has only dense layers. It returns
 * their contents; `rl/train/stepFolder.ts` calls it and writes the files.
 */
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { DensePolicy } from "../model/trunk.ts"
import type { RunningMoments } from "../env/RunningMoments.ts"
import type { ActionSpace } from "../env/Space.ts"
import { actorToHeader } from "./cheader.ts"
import { type ActionBounds, type DenseActor, exampleOf, layer, type InputNormalisation } from "./DenseActor.ts"
import { PolicyError } from "../policy/PolicyError.ts"
import { actorToHdf5 } from "./rltools.ts"
import * as Layout from "../../run/Layout.ts"
import { utf8 } from "../../base/config/utf8.ts"
import { FormatError } from "../../base/formats/FormatError.ts"

interface PolicyFilesOptions {
  readonly name: string
  readonly environment: string
  readonly commit: string
  /** The statistics by which observations are normalised. */
  readonly moments: RunningMoments | undefined
  readonly actionSpace: ActionSpace
  /** An observation for the example in the files. */
  readonly example: Float32Array
}

/** Makes the description of a policy that `cheader.ts` and `rltools.ts` encode, from the learner's weights. */
export const denseActor = (
  { layers, head }: DensePolicy,
  weights: NamedTensors,
  inputs: number,
  normalisation?: InputNormalisation,
): DenseActor => ({
  inputs,
  layers: layers.map(({ names, activation }) => layer(weights, names, activation)),
  head,
  normalisation,
})

/** The largest float32. It replaces infinite bounds, because the files hold only finite numbers. */
const largestFloat32 = 3.4028234663852886e38

/** Returns the bounds of continuous actions; undefined for discrete ones, where the largest output wins. */
export const boundsOf = (space: ActionSpace, { scaled = false }: DensePolicy): ActionBounds | undefined =>
  space._tag !== "Box"
    ? undefined
    : {
        low: Float32Array.from(space.low, (bound) => Math.max(bound, -largestFloat32)),
        high: Float32Array.from(space.high, (bound) => Math.min(bound, largestFloat32)),
        scaled,
      }

/** Makes the normalisation that `rl/env/Normalise.ts` applies in the training, where 1e-8 prevents a division by zero. */
const normalisationOf = ({ mean, variance }: RunningMoments, clip?: number): InputNormalisation => ({
  mean: Float32Array.from(mean),
  deviation: Float32Array.from(variance, (value) => Math.sqrt(value + 1e-8)),
  clip,
})

/** Returns `checkpoint.h` and `checkpoint.h5` by name; no files if the policy has other layers (`dense` undefined). */
export const policyFiles = (
  dense: DensePolicy | undefined,
  weights: NamedTensors,
  { name, environment, commit, moments, actionSpace, example }: PolicyFilesOptions,
): Readonly<Record<string, Uint8Array>> => {
  if (dense === undefined) return {}
  const inputs = example.length
  const actorWith = (clip?: number): DenseActor =>
    denseActor(dense, weights, inputs, moments === undefined ? undefined : normalisationOf(moments, clip))
  // `rl/env/Normalise.ts` clips normalised observations to −10 … 10 by default, so the header must, too.
  const header = { ...actorWith(10), bounds: boundsOf(actionSpace, dense) }
  // The file for RLtools has neither clip nor bounds: RLtools' normalisation does not clip, and its envs take actions
  // from −1 to 1.
  const plain = actorWith()
  return {
    ...unlessRefused(Layout.inStep.header, () =>
      utf8.encode(actorToHeader(header, { name, commit, example: exampleOf(header, example) })),
    ),
    ...unlessRefused(Layout.inStep.hdf5, () =>
      actorToHdf5(plain, {
        checkpointName: name,
        meta: { environment: { name: environment } },
        example: exampleOf(plain, example),
      }),
    ),
  }
}

/** Returns the file by its name, or no file if its format cannot hold the policy: RLtools lacks some activations. */
const unlessRefused = (file: string, make: () => Uint8Array): Readonly<Record<string, Uint8Array>> => {
  try {
    return { [file]: make() }
  } catch (error) {
    if (error instanceof PolicyError || error instanceof FormatError) return {}
    throw error
  }
}
