/** Reads policies from the bytes of ONNX files, which may come from anybody. */
import { Effect } from "effect"
import { messageOf } from "../../base/text/text.ts"
import { masked, type RowSpace, sizeOf } from "../env/Space.ts"
import { type Embedded, readEmbedded } from "../../tensor/graph/onnx/embedded.ts"
import { sizeOf as elements, type Tensor } from "../../tensor/graph/Tensor.ts"
import { aboutOf, type PolicyAbout } from "./about.ts"
import { PolicyError } from "./PolicyError.ts"

/** A policy as its file describes it. There is a program `main`. */
interface DecodedPolicy {
  readonly about: PolicyAbout
  readonly programs: Embedded["programs"]
}

/**
 * Reads the description and the programs of a policy from an ONNX file that this library exported. Fails with a `PolicyError`
 * that names `path` if there is none, if an op of a program does not fit its inputs, or if the programs do not fit the
 * description.
 */
export const decodePolicy = (bytes: Uint8Array, path: string): Effect.Effect<DecodedPolicy, PolicyError> =>
  Effect.try({
    try: () => {
      const embedded = readEmbedded(bytes)
      if (embedded === undefined) throw new Error("expected an ONNX file that effect-rl exported, found no description")
      const { programs } = embedded
      const about = aboutOf(embedded.about)
      const misfit = misfitOf(programs, about)
      if (misfit !== undefined) throw new Error(misfit)
      return { about, programs }
    },
    catch: (error) => new PolicyError({ message: `${path}: ${messageOf(error)}` }),
  })

/** Says why programs do not fit their description, as in a file that another program wrote; undefined if all fit. */
const misfitOf = (programs: Embedded["programs"], about: PolicyAbout): string | undefined => {
  const wanted = { observations: sizeOf(rowSpaceIn(about)), actions: sizeOf(about.actionSpace) }
  if (!Object.hasOwn(programs, "main")) return "expected a program that acts, found none"
  for (const { inputs, outputs } of Object.values(programs)) {
    const lengthOf = (tensor: Tensor | undefined) => (tensor === undefined ? 0 : elements(tensor.shape))
    const [observations, actions] = [lengthOf(inputs.observations), lengthOf(outputs.actions)]
    if (observations !== wanted.observations)
      return `expected a program that reads ${wanted.observations} numbers, found ${observations}`
    if (actions !== wanted.actions) return `expected a program that gives ${wanted.actions} numbers, found ${actions}`
    const [memory, next] = [lengthOf(inputs.memory), lengthOf(outputs.nextMemory)]
    if (memory !== next) return `expected a program that keeps a memory of ${memory} numbers, found ${next}`
  }
  return undefined
}

/** Returns the space of the rows that a policy reads. Throws if masks do not fit the actions. */
const rowSpaceIn = ({ observationSpace, actionSpace, hasActionMask }: PolicyAbout): RowSpace =>
  hasActionMask ? masked(observationSpace, actionSpace) : observationSpace
