/**
 * Reads an ATIF trajectory as an episode of an evaluation. Trajectories themselves have no score: the file `result.json` of a trial
 * of Harbor, beside the trajectory's folder, has the task's name and its rewards.
 */
import { Effect, Schema } from "effect"
import { FormatError } from "../../../base/formats/FormatError.ts"
import type { ConfigError } from "../../../base/config/Config.ts"
import { checkJson } from "../../../base/config/jsonFile.ts"
import { importedType } from "../../evaluate/report/sameTasks.ts"
import type { ImportedEpisode } from "../ImportedEpisode.ts"
import { rolloutsOf, rowIn, trajectoryOf } from "./readAtif.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The parts of a trial's result that we read. */
const TrialResult = Schema.Struct({
  task_name: Schema.String,
  agent_info: optional(Schema.Struct({ name: Schema.String })),
  verifier_result: optional(Schema.Struct({ rewards: optional(Schema.Record(Schema.String, Schema.Finite)) })),
  exception_info: optional(
    Schema.Struct({ exception_type: optional(Schema.String), exception_message: optional(Schema.String) }),
  ),
  started_at: optional(Schema.String),
  finished_at: optional(Schema.String),
})
type TrialResult = typeof TrialResult.Type

/** The parsed JSON of files, with their paths for errors. */
interface TrialFiles {
  readonly trajectory: { readonly value: unknown; readonly path: string }
  readonly result: { readonly value: unknown; readonly path: string } | undefined
  /** The name of the task if no file has one. */
  readonly name: string
}

/** Reads a trajectory as an episode. */
export const episodeOf = Effect.fnUntraced(function* ({
  trajectory: { value, path },
  result,
  name,
}: TrialFiles): Effect.fn.Return<ImportedEpisode, ConfigError | FormatError> {
  const trajectory = yield* trajectoryOf(value, path)
  const trial = result === undefined ? undefined : yield* checkJson(TrialResult, result.value, result.path)
  const row = rowIn(trajectory)
  const rewards = trial?.verifier_result?.rewards ?? {}
  const stated = trajectory.final_metrics?.extra?.reward
  const [first = typeof stated === "number" && Number.isFinite(stated) ? stated : null] = Object.values(rewards)
  const id = row?.env_id ?? trial?.task_name ?? name
  const rollouts = yield* Effect.mapError(
    rolloutsOf(trajectory, { id, type: importedType, reward: first }),
    ({ message }) => new FormatError({ path, message: `${path}: ${message}` }),
  )
  const exception = trial?.exception_info ?? null
  const type = exception?.exception_type ?? "Error"
  return {
    agent: row?.agent ?? trial?.agent_info?.name ?? trajectory.agent.name,
    variant: "",
    model: rollouts[0].meta.model,
    group: "",
    task: { id, metadata: row?.metadata ?? {} },
    repeat: row?.repeat ?? null,
    scores: trial !== undefined || first === null ? rewards : { score: first },
    answer: null,
    target: null,
    durationMillis: trial === undefined ? 0 : durationOf(trial),
    // A verifier can score a trial although it has ended with an exception, such as one for its time limit.
    error:
      exception === null || Object.keys(rewards).length > 0
        ? null
        : { error: type, message: exception.exception_message ?? type },
    rollouts,
    row,
  }
})

const durationOf = ({ started_at, finished_at }: TrialResult): number => {
  const millis = Date.parse(finished_at ?? "") - Date.parse(started_at ?? "")
  return Number.isFinite(millis) && millis > 0 ? millis : 0
}
