import { encodeExperts } from "../../base/formats/routedExperts.ts"
import type { Generated } from "../inference/Engine.ts"

/**
 * Encodes the experts of the tokens of a prompt and its answer, if the engine records them, in the form of vLLM with prime-rl's
 * extension. `start` is the position of the first of these tokens.
 */
export const expertsBody = ({ routedExperts }: Generated) =>
  routedExperts === undefined ? {} : { routed_experts: { ...encodeExperts(routedExperts), start: 0 } }
