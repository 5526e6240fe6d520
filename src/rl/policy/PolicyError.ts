/** Defines the error of policies, and `refuse`, which throws it. */
import * as Schema from "effect/Schema"

/**
 * Reports that a policy cannot be used: a path holds none that can act here, the policy cannot read an observation or a
 * state, or a file format cannot hold it. The message is one line for people that says what was expected.
 */
export class PolicyError extends Schema.TaggedError<PolicyError>()("PolicyError", { message: Schema.String }) {}

export const refuse = (message: string): never => {
  throw new PolicyError({ message })
}
