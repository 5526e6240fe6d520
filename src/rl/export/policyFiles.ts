/**
 * Makes the file `checkpoint.h5` (RLtools) of a policy that has only dense layers. It returns the contents;
 * `rl/train/stepFolder.ts` calls it and writes the file.
 */
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { DensePolicy } from "../model/trunk.ts"
import type { RunningMoments } from "../env/RunningMoments.ts"
import { type DenseActor, exampleOf, layer, type InputNormalisation } from "./DenseActor.ts"
import { PolicyError } from "../policy/PolicyError.ts"
import { actorToHdf5 } from "./rltools.ts"
import * as Layout from "../../run/Layout.ts"
import { FormatError } from "../../base/formats/FormatError.ts"

interface PolicyFilesOptions {
  readonly name: string
  readonly environment: string
  /** The statistics by which observations are normalised. */
  readonly moments: RunningMoments | undefined
  /** An observation for the example in the file. */
  readonly example: Float32Array
}

/** Makes the description of a policy that `rltools.ts` encodes, from the learner's weights. */
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

/** Makes the normalisation that `rl/env/Normalise.ts` applies in the training, where 1e-8 prevents a division by zero. */
const normalisationOf = ({ mean, variance }: RunningMoments): InputNormalisation => ({
  mean: Float32Array.from(mean),
  deviation: Float32Array.from(variance, (value) => Math.sqrt(value + 1e-8)),
})

/**
 * Returns `checkpoint.h5` by name; no file if the policy has other layers (`dense` undefined), or if RLtools lacks an activation.
 * The file has neither the limits of normalised observations nor the bounds of actions: RLtools' normalisation does not clip, and
 * its envs take actions from −1 to 1.
 */
export const policyFiles = (
  dense: DensePolicy | undefined,
  weights: NamedTensors,
  { name, environment, moments, example }: PolicyFilesOptions,
): Readonly<Record<string, Uint8Array>> => {
  if (dense === undefined) return {}
  const actor = denseActor(dense, weights, example.length, moments === undefined ? undefined : normalisationOf(moments))
  try {
    const meta = { environment: { name: environment } }
    return {
      [Layout.inStep.hdf5]: actorToHdf5(actor, { checkpointName: name, meta, example: exampleOf(actor, example) }),
    }
  } catch (error) {
    if (error instanceof PolicyError || error instanceof FormatError) return {}
    throw error
  }
}
