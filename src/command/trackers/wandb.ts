/**
 * Makes the folder that `wandb sync` uploads to Weights & Biases (W&B). It has the log `run-ID.wandb`, whose records are
 * messages of W&B's `wandb_internal.proto`, and the run's files. No server, API key or clock is needed, so a run always
 * produces the same bytes.
 */
import { Effect } from "effect"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { ByteWriter } from "../../base/formats/ByteWriter.ts"
import { ProtobufMessage } from "../../base/formats/protobuf.ts"
import { writeLogHeader, writeLogRecord } from "../../base/formats/recordLog.ts"
import { timeOf, toFlatPath } from "../../run/identifier.ts"
import { CommandError } from "../CommandError.ts"
import type { TrackedEvent, TrackedRun } from "./TrackedRun.ts"

/** The labels under which W&B shows the run. */
export interface WandbLabels {
  /** The user or the team that owns the project. Default: the owner of the API key that `wandb sync` uses. */
  readonly entity?: string | undefined
  /** Default: the run's experiment. */
  readonly project?: string | undefined
  /** The run's id within the project. Default: the beginning of a digest of the run's name and time. */
  readonly id?: string | undefined
  /** Default: the run's name. */
  readonly name?: string | undefined
  /** The name of runs that W&B shows as one group. Default: none. */
  readonly group?: string | undefined
  readonly notes?: string | undefined
  /** Default: the env and the algorithm. */
  readonly tags?: ReadonlyArray<string> | undefined
}

interface WandbFolder {
  /** The name that W&B's own client would choose for the folder. */
  readonly name: string
  readonly files: Readonly<Record<string, Uint8Array>>
}

/** The numbers of the fields in the messages of `wandb_internal.proto`. */
const fields = {
  Record: { num: 1, history: 2, summary: 3, files: 6, run: 17, exit: 18, final: 20 },
  RunRecord: {
    runId: 1,
    entity: 2,
    project: 3,
    config: 4,
    group: 6,
    jobType: 7,
    displayName: 8,
    notes: 9,
    tags: 10,
    startTime: 17,
    git: 21,
  },
  /** The field number of the list of items in `ConfigRecord`, `SummaryRecord` and `HistoryRecord`. */
  items: 1,
  /** The fields of `ConfigItem`, `SummaryItem` and `HistoryItem`, which have the same numbers. */
  Item: { key: 1, nestedKey: 2, valueJson: 16 },
  HistoryRecord: { step: 2 },
  HistoryStep: { num: 1 },
  FilesRecord: { files: 1 },
  FilesItem: { path: 1, policy: 2 },
  RunExitRecord: { exitCode: 1, runtime: 2 },
  GitRepoRecord: { commit: 2 },
  Timestamp: { seconds: 1, nanos: 2 },
}

/** The policy with which `wandb sync` uploads a file once, at the end. */
const uploadAtEnd = 1

/** The exit code for each state of a run. W&B's client reports 255 for an interrupted process. */
const exitCodes = { finished: 0, failed: 1, stopped: 255 } as const satisfies Record<TrackedRun["state"], number>

/** The folder for the run's files. `wandb sync` itself writes `config.yaml` into the folder above. */
const ownFiles = "run"

const itemOf = (key: string, json: string): ProtobufMessage =>
  new ProtobufMessage().text(fields.Item.key, key).text(fields.Item.valueJson, json)

const listOf = (items: ReadonlyArray<ProtobufMessage>): ProtobufMessage => {
  const list = new ProtobufMessage()
  for (const item of items) list.message(fields.items, item)
  return list
}

/**
 * Makes the function that appends numbers as items of a list, for the history. A run can have a million numbers, so the bytes
 * of each name are encoded once. Numbers are written as JSON; W&B also accepts `NaN`, `Infinity` and `-Infinity`.
 */
const numberWriter = () => {
  const keys = new Map<string, Uint8Array>()
  const keyOf = (key: string): Uint8Array => {
    const known = keys.get(key)
    if (known !== undefined) return known
    const keyBytes = new ProtobufMessage().text(fields.Item.key, key).finish()
    keys.set(key, keyBytes)
    return keyBytes
  }
  return (to: ByteWriter, numbers: Readonly<Record<string, number>>): void => {
    for (const key in numbers) {
      const [name, json] = [keyOf(key), String(numbers[key])]
      to.varint(fields.items * 8 + 2)
      // The JSON has two bytes before it and one byte for its length.
      to.varint(name.length + 3 + json.length)
      to.piece(name)
      to.varint(fields.Item.valueJson * 8 + 2)
      to.varint(json.length)
      to.text(json)
    }
  }
}

/**
 * Merges the events of each step and sorts them by step, because W&B accepts only one row for each step, in ascending order.
 */
const rowsOf = (events: ReadonlyArray<TrackedEvent>): ReadonlyArray<TrackedEvent> => {
  const rows = new Map<number, TrackedEvent>()
  for (const event of events) {
    rows.set(event.step, { ...event, metrics: { ...rows.get(event.step)?.metrics, ...event.metrics } })
  }
  return [...rows.values()].sort((a, b) => a.step - b.step)
}

const refusal = (what: string, value: string, expected: string): CommandError =>
  CommandError.failed(`${what} "${value}": expected ${expected}`)

/** Adds the default labels. Fails if W&B does not accept one of the labels. */
const labelsOf = Effect.fnUntraced(function* (run: TrackedRun, given: WandbLabels) {
  const { env, algorithm } = run.settings
  const name = typeof algorithm === "object" && "name" in algorithm ? algorithm.name : undefined
  const identity = utf8.encode(JSON.stringify([run.experiment, run.name, run.startedAtMillis]))
  const labels = {
    ...given,
    project: given.project ?? run.experiment.replace(/[/\\#?%:]/g, "_").slice(0, 128),
    id: given.id ?? (yield* sha256(identity)).slice(0, 16),
    name: given.name ?? run.name,
    tags: given.tags ?? [env, name].flatMap((tag) => (typeof tag === "string" && tag !== "" ? [tag.slice(0, 64)] : [])),
  }
  if (!/^[^/\\#?%:]{1,128}$/.test(labels.project)) {
    return yield* refusal("project", labels.project, "1 to 128 characters, none of them / \\ # ? % or :")
  }
  if (!/^[\w.-]{1,128}$/.test(labels.id)) {
    return yield* refusal("run id", labels.id, "1 to 128 letters, digits, underscores, dots and dashes")
  }
  const long = labels.tags.find((tag) => tag === "" || tag.length > 64)
  if (long !== undefined) return yield* refusal("tag", long, "1 to 64 characters")
  return labels
})

/**
 * Returns the folder with a run that `wandb sync` uploads. Fails if W&B does not accept one of the labels.
 *
 * @example
 * ```ts
 * const { name, files } = yield* wandbFolder(run, { project: "cartpole" })
 * // name is "offline-run-20260131_120000-4f0c…", and files has "run-4f0c….wandb" and "files/run/policy.onnx"
 * ```
 */
export const wandbFolder = Effect.fnUntraced(function* (
  run: TrackedRun,
  given: WandbLabels = {},
): Effect.fn.Return<WandbFolder, CommandError> {
  const labels = yield* labelsOf(run, given)
  const log = new ByteWriter(1 << 16)
  writeLogHeader(log)
  let count = 0
  const write = (field: number, content: Uint8Array): void =>
    writeLogRecord(log, new ProtobufMessage().int(fields.Record.num, ++count).bytes(field, content).finish())

  write(fields.Record.run, runRecord(run, labels).finish())
  const writeNumbers = numberWriter()
  const row = new ByteWriter()
  const last: Record<string, number> = {}
  for (const { step, wallSeconds, metrics } of rowsOf(run.events)) {
    const runtime = Math.max(0, wallSeconds - run.startedAtMillis / 1000)
    const numbers = { ...metrics, _step: step, _timestamp: wallSeconds, _runtime: runtime }
    Object.assign(last, numbers)
    row.clear()
    writeNumbers(row, numbers)
    row.piece(
      new ProtobufMessage()
        .message(fields.HistoryRecord.step, new ProtobufMessage().int(fields.HistoryStep.num, step))
        .finish(),
    )
    write(fields.Record.history, row.written)
  }

  const seconds = Math.round(Math.max(0, run.endedAtMillis - run.startedAtMillis) / 1000)
  const { nestedKey, valueJson } = fields.Item
  const runtime = new ProtobufMessage()
    .text(nestedKey, "_wandb")
    .text(nestedKey, "runtime")
    .text(valueJson, String(seconds))
  const digest = run.digest === undefined ? [] : [itemOf("effect_rl/digest", JSON.stringify(run.digest))]
  row.clear()
  writeNumbers(row, last)
  row.piece(listOf([...digest, runtime]).finish())
  write(fields.Record.summary, row.written)

  const files = Object.entries(run.files).map(([name, bytes]) => [`${ownFiles}/${name}`, bytes] as const)
  const listed = new ProtobufMessage()
  for (const [path] of files) {
    const { FilesItem } = fields
    listed.message(
      fields.FilesRecord.files,
      new ProtobufMessage().text(FilesItem.path, path).int(FilesItem.policy, uploadAtEnd),
    )
  }
  write(fields.Record.files, listed.finish())
  const { exitCode, runtime: ran } = fields.RunExitRecord
  write(fields.Record.exit, new ProtobufMessage().int(exitCode, exitCodes[run.state]).int(ran, seconds).finish())
  // Older clients of W&B handle the exit when they read this record.
  write(fields.Record.final, new Uint8Array(0))

  const time = toFlatPath({ time: timeOf(new Date(run.startedAtMillis)) })
  return {
    name: `offline-run-${time}-${labels.id}`,
    files: {
      [`run-${labels.id}.wandb`]: log.written.slice(),
      ...Object.fromEntries(files.map(([path, bytes]) => [`files/${path}`, bytes])),
    },
  }
})

const runRecord = (
  { settings, startedAtMillis, commit }: TrackedRun,
  { id, entity, project, group, name, notes, tags }: Effect.Success<ReturnType<typeof labelsOf>>,
): ProtobufMessage => {
  const { RunRecord, Timestamp, GitRepoRecord } = fields
  const config = Object.entries(settings).map(([key, value]) => itemOf(key, JSON.stringify(value)))
  const record = new ProtobufMessage()
    .text(RunRecord.runId, id)
    .text(RunRecord.project, project)
    .message(RunRecord.config, listOf(config))
    .text(RunRecord.jobType, "train")
    .text(RunRecord.displayName, name)
  if (entity !== undefined) record.text(RunRecord.entity, entity)
  if (group !== undefined) record.text(RunRecord.group, group)
  if (notes !== undefined) record.text(RunRecord.notes, notes)
  for (const tag of tags) record.text(RunRecord.tags, tag)
  const [seconds, millis] = [Math.floor(startedAtMillis / 1000), startedAtMillis % 1000]
  record.message(
    RunRecord.startTime,
    new ProtobufMessage().int(Timestamp.seconds, seconds).int(Timestamp.nanos, millis * 1e6),
  )
  return commit === undefined
    ? record
    : record.message(RunRecord.git, new ProtobufMessage().text(GitRepoRecord.commit, commit))
}
