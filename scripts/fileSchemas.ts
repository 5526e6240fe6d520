/**
 * Makes the JSON Schemas of a run's files, from the Schemas and comments in src/; schemas.ts writes them to
 * schemas/files/. All objects are closed (they allow only the keys that they list), so a validator finds other keys.
 */
import { Schema } from "effect"
import { MemoryEntry } from "../src/agents/agent/memory/Memory.ts"
import { Manifest, Pointer } from "../src/run/Checkpoint.ts"
import type { Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { Rollout } from "../src/agents/episode/Rollout.ts"
import { Sample } from "../src/agents/episode/samples/Sample.ts"
import { EvaluationResult } from "../src/agents/evaluate/result.ts"
import { JournalEntry, JournalHead } from "../src/agents/evaluate/journal.ts"
import { EpisodeRow, StepRow } from "../src/agents/evaluate/rows.ts"
import { ReturnFile } from "../src/run/evaluation.ts"
import { Lease } from "../src/run/store/fence.ts"
import { Provenance } from "../src/run/store/RunStore.ts"
import { CallFile } from "../src/agents/lm/callFiles.ts"
import { StepScoreRecord } from "../src/run/record/stepScores.ts"
import { SystemRecord } from "../src/run/record/system.ts"
import { RunResult } from "../src/run/RunResult.ts"
import { AgentJson, RuntimeJson } from "../src/agents/training/checkpointing.ts"
import { RuntimeState } from "../src/agents/training/RuntimeState.ts"
import { RuntimeResult } from "../src/agents/training/RuntimeResult.ts"
import { closedAll } from "./closed.ts"
import { type Meanings, meaningsIn, read, schemaIn } from "./meanings.ts"

/** The place of comments: a source file, and the names of the Schemas in it; without names, the whole file. */
type CommentPlace = readonly [file: string, ...names: ReadonlyArray<string>]

interface File {
  /** The name of the file `schemas/files/{name}.schema.json`. */
  readonly name: string
  readonly title: string
  readonly schema: Schema.Top
  /** The place of the comments on its keys. */
  readonly from: CommentPlace
  /** The places of the comments on the keys of the Schemas that are nested in `schema`. */
  readonly also?: ReadonlyArray<CommentPlace>
  /** Whether the keys are snake_case in the file and camelCase in code. Default: false, the same spelling in both. */
  readonly renamed?: boolean
}

/** Makes the Schema of a line of `played.jsonl`: `fields` and a checksum, which lines of older versions lack. */
const withChecksum = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({ ...fields, sha256: Schema.optionalKey(Schema.String) })

const files: ReadonlyArray<File> = [
  {
    name: "score",
    title: "A line of scores/train/scores.jsonl and of scores/val/ of a language-model agent",
    schema: StepScoreRecord,
    from: ["src/run/record/stepScores.ts", "StepScoreRecord"],
  },
  {
    name: "memory",
    title: "A line of memories/memory_{episode}.jsonl, and of the one in a checkpoint",
    schema: MemoryEntry,
    from: ["src/agents/agent/memory/Memory.ts", "MemoryEntry"],
  },
  {
    name: "runtime",
    title: "checkpoints/{name}/runtime.json",
    schema: Schema.Struct({ ...RuntimeJson.fields, progress: Schema.optionalKey(Schema.Struct(RuntimeState.fields)) }),
    from: ["src/agents/training/checkpointing.ts", "RuntimeJson"],
    also: [["src/agents/training/RuntimeState.ts", "RuntimeState"]],
  },
  {
    name: "agent",
    title: "checkpoints/{name}/agent.json",
    schema: AgentJson,
    from: ["src/agents/training/checkpointing.ts", "AgentJson"],
  },
  {
    name: "manifest",
    title: "checkpoints/{name}/manifest.json",
    schema: Manifest,
    from: ["src/run/Checkpoint.ts", "Manifest"],
  },
  {
    name: "latest",
    title: "checkpoints/latest.json",
    schema: Pointer,
    from: ["src/run/Checkpoint.ts", "Pointer"],
  },
  {
    name: "llm-call",
    title: "A file of llm_calls/",
    schema: CallFile,
    from: ["src/agents/lm/callFiles.ts", "CallFile"],
  },
  {
    name: "metrics",
    title: "metrics.json: of an agent that talks, of a training, or of an evaluation with its report",
    schema: Schema.Union([RuntimeResult, RunResult, EvaluationResult]),
    from: ["src/agents/training/RuntimeResult.ts"],
    also: [
      ["src/agents/evaluate/result.ts", "EvaluationResult"],
      ["src/agents/evaluate/report/Report.ts"],
      ["src/base/statistics/paired.ts"],
    ],
    renamed: true,
  },
  {
    name: "return",
    title: "return.json: all validations, written last",
    schema: ReturnFile,
    from: ["src/run/evaluation.ts", "EvaluationRecord"],
  },
  {
    name: "lease",
    title: "run.lease: the process that may write the run",
    schema: Lease,
    from: ["src/run/store/fence.ts", "Lease"],
  },
  {
    name: "rollout",
    title: "A line of rollouts/train/rollouts.jsonl and of rollouts/val/",
    schema: Rollout,
    from: ["src/agents/episode/Rollout.ts"],
  },
  {
    name: "sample",
    title: "A line of training samples: the tokens of a turn",
    schema: Sample,
    from: ["src/agents/episode/samples/Sample.ts", "Fields"],
  },
  {
    name: "evaluation-episode",
    title: "A line of episodes.jsonl of an evaluation; table.csv has the same, with columns such as scores.exact",
    schema: EpisodeRow,
    from: ["src/agents/evaluate/rows.ts", "about", "ending", "EpisodeRow"],
  },
  {
    name: "evaluation-step",
    title: "A line of steps.jsonl of an evaluation",
    schema: StepRow,
    from: ["src/agents/evaluate/rows.ts", "about", "ending", "StepRow"],
  },
  {
    name: "played",
    title:
      "A line of played.jsonl, which an evaluation keeps until it has finished: what must be equal to resume it, then its episodes",
    schema: Schema.Union([withChecksum(JournalHead.fields), withChecksum(JournalEntry.fields)]),
    from: ["src/agents/evaluate/journal.ts", "JournalEntry"],
    also: [["src/agents/evaluate/PlayedEpisode.ts"], ["src/agents/evaluate/rows.ts", "about", "EpisodeRow"]],
  },
  {
    name: "git",
    title: "git.json: the code that made a run",
    schema: Provenance,
    from: ["src/run/store/RunStore.ts", "Provenance"],
  },
  {
    name: "system",
    title: "A line of system.jsonl: the resources that the run uses",
    schema: SystemRecord,
    from: ["src/run/record/system.ts", "SystemRecord"],
  },
]

const meaningsFrom = (places: ReadonlyArray<CommentPlace>): Meanings =>
  meaningsIn(
    places.flatMap(([file, ...names]) =>
      names.length === 0 ? [read(file)] : names.map((name) => schemaIn(file, name)),
    ),
  )

/** Returns all JSON Schemas by their names, such as `score` for schemas/files/score.schema.json. */
export const fileSchemas = (): ReadonlyMap<string, Plain> =>
  new Map(
    files.map(({ name, title, schema, from, also = [], renamed = false }) => [
      name,
      {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        title,
        ...closedAll(jsonSchema(schema), { meanings: meaningsFrom([from, ...also]), renamed }),
      },
    ]),
  )
