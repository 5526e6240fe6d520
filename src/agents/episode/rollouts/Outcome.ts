/** Defines the outcome of a request for an episode (rollouts or a failure), which `RolloutEngine` writes to a file. */
import { Schema } from "effect"
import { oneLine } from "../../../base/text/text.ts"
import type { FailureCounts } from "../../../base/statistics/failureCounts.ts"
import { Rollout } from "../Rollout.ts"
import { RolloutRequest, textOf } from "./RolloutRequest.ts"

/** The reason why an episode has no rollout. */
export const RolloutFailure = Schema.Struct({
  /** The tag of the error: `LmError`, `AgentError`, `EnvError`, `ProtocolError` or `DatasetError`. */
  error: Schema.String,
  message: Schema.String,
})
export type RolloutFailure = typeof RolloutFailure.Type

/** Counts failures by their reason, the most frequent first. */
export const countFailures = (failures: ReadonlyArray<RolloutFailure>): FailureCounts =>
  [...Map.groupBy(failures, ({ error, message }) => `${error}: ${oneLine(message)}`)]
    .map(([reason, some]) => ({ reason, count: some.length }))
    .toSorted((one, other) => other.count - one.count)

/** The rollouts of a request, or its failure. A file of outcomes has one outcome on each line. */
export const RolloutOutcome = Schema.Struct({
  request: RolloutRequest,
  /** The name of the protocol. */
  protocol: Schema.String,
  /** A short hash of the set of tasks; it changes if the tasks change. */
  tasks: Schema.String,
  /** The rollouts; empty if the episode failed. */
  rollouts: Schema.Array(Rollout),
  failure: Schema.NullOr(RolloutFailure),
})
export type RolloutOutcome = typeof RolloutOutcome.Type

/** Encodes an outcome as a line with its line feed. The order of keys is fixed, so equal outcomes have equal lines. */
export const line = ({ request, protocol, tasks, rollouts, failure }: RolloutOutcome): string => {
  const { error, message } = failure ?? {}
  const failed = failure === null ? "null" : JSON.stringify({ error, message })
  const origin = `"protocol":${JSON.stringify(protocol)},"tasks":${JSON.stringify(tasks)}`
  return `{"request":${textOf(request)},${origin},"rollouts":${JSON.stringify(rollouts)},"failure":${failed}}\n`
}
