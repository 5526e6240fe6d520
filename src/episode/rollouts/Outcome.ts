/** What came of a request for an episode, as a line of a batch's file. */
import { Schema } from "effect"
import { Rollout } from "../Rollout.ts"
import { RolloutRequest, textOf } from "./RolloutRequest.ts"

/** Why there is no rollout. */
export const Failure = Schema.Struct({
  /** `LmError`, `AgentError`, `EnvError`, `ProtocolError`, `DatasetError`. */
  error: Schema.String,
  message: Schema.String,
})
export type Failure = typeof Failure.Type

/** What came of a request. */
export const Outcome = Schema.Struct({
  request: RolloutRequest,
  /** By which it was played. */
  protocol: Schema.String,
  /** The digest of the set that its task is of. */
  tasks: Schema.String,
  /** None where it failed. */
  rollouts: Schema.Array(Rollout),
  failure: Schema.NullOr(Failure),
})
export type Outcome = typeof Outcome.Type

/** With its end; keys in one order, so that the same outcome is the same line. */
export const line = ({ request, protocol, tasks, rollouts, failure }: Outcome): string => {
  const { error, message } = failure ?? {}
  const failed = failure === null ? "null" : JSON.stringify({ error, message })
  const by = `"protocol":${JSON.stringify(protocol)},"tasks":${JSON.stringify(tasks)}`
  return `{"request":${textOf(request)},${by},"rollouts":${JSON.stringify(rollouts)},"failure":${failed}}\n`
}
