/**
 * Saves and reads the checkpoints that clients name: `tinker://MODEL/weights/NAME`, with the optimiser's moments, and
 * `tinker://MODEL/sampler_weights/NAME`. Both are adapters in peft's format, so other programs can load them, too.
 */
import { Clock, Effect, Schema } from "effect"
import { parsedJson, prettyJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { DecoderConfig } from "../../../decoder/networks/Decoder.ts"
import * as HuggingFaceAdapter from "../../../decoder/huggingFace/Adapter.ts"
import type { Contents, FileTree } from "../../../run/store/FileTree.ts"
import { type ApiError, badRequest } from "../../../decoder/serve/ApiError.ts"
import { notFound } from "../answers.ts"
import { type AdapterInTraining, alpha, encodeState, stateFile } from "./AdapterInTraining.ts"

const checkpointKinds = ["weights", "sampler_weights"] as const
type CheckpointKind = (typeof checkpointKinds)[number]

/** The address of a checkpoint. */
export interface CheckpointPlace {
  readonly model: string
  readonly kind: CheckpointKind
  readonly name: string
}

export const CheckpointInfo = Schema.Struct({
  /** The number of the request that saved it, which recognises a request that is repeated after a kill. */
  seq: Schema.Int,
  /** The number of the model's updates. */
  steps: Schema.Int,
  rank: Schema.Int,
  trains_attention: Schema.Boolean,
  trains_mlp: Schema.Boolean,
  /** Whether a client named it. Others are removed when newer ones are saved. */
  is_named: Schema.Boolean,
  size_bytes: Schema.Int,
  saved_at: Schema.String,
  expires_at: Schema.NullOr(Schema.String),
})
export type CheckpointInfo = typeof CheckpointInfo.Type

/** A checkpoint on disk. */
export interface Checkpoint {
  readonly place: CheckpointPlace
  readonly info: CheckpointInfo
}

const infoFile = "checkpoint.json"

export const addressOf = ({ model, kind, name }: CheckpointPlace): string => `tinker://${model}/${kind}/${name}`
export const folderOfCheckpoint = ({ model, kind, name }: CheckpointPlace): string => `models/${model}/${kind}/${name}`

/** Tells whether a text is the name of a model or of a checkpoint, which is the name of its folder and no path to another one. */
export const isName = (text: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(text)

/** Checks the name that a client gives to a checkpoint. */
export const checkName = (name: string): Effect.Effect<string, ApiError> =>
  isName(name)
    ? Effect.succeed(name)
    : Effect.fail(
        badRequest("path: expected a name of at most 128 letters, digits, dots, dashes and underscores", "path"),
      )

/** Parses an address. `param` is the key of the request that holds it. */
export const placeOf = (address: string, param: string): Effect.Effect<CheckpointPlace, ApiError> => {
  const [, model, kind, name] = /^tinker:\/\/([^/]+)\/(weights|sampler_weights)\/([^/]+)$/.exec(address) ?? []
  if ((kind === "weights" || kind === "sampler_weights") && isName(model) && isName(name))
    return Effect.succeed({ model, kind, name })
  return Effect.fail(
    badRequest(`${param}: expected tinker://MODEL/weights/NAME or tinker://MODEL/sampler_weights/NAME`, param),
  )
}

interface NewCheckpoint {
  readonly place: CheckpointPlace
  readonly adapter: AdapterInTraining
  readonly decoder: DecoderConfig
  readonly base: string
  readonly info: Omit<CheckpointInfo, "size_bytes" | "rank" | "steps" | "trains_attention" | "trains_mlp">
}

/** Saves a checkpoint as a whole or not at all. */
export const saveCheckpoint = Effect.fnUntraced(function* (
  files: FileTree,
  { place, adapter, decoder, base, info }: NewCheckpoint,
) {
  const { rank, trainsAttention, trainsMlp } = adapter.choice
  const config = { rank, alpha, rankStabilised: false, targets: adapter.numbers.shape.targets, base }
  const peft = yield* HuggingFaceAdapter.filesOf(
    HuggingFaceAdapter.make(config, adapter.numbers.stateDictOf(0)),
    decoder,
  )
  const contents: Readonly<Record<string, Contents>> =
    place.kind === "weights" ? { ...peft, [stateFile]: encodeState(adapter) } : peft
  const parts = Object.fromEntries(
    Object.entries(contents).map(([name, one]) => [name, one instanceof Uint8Array ? [one] : [...one]]),
  )
  const size = Object.values(parts).reduce((sum, all) => sum + all.reduce((bytes, { length }) => bytes + length, 0), 0)
  const saved: CheckpointInfo = {
    ...info,
    steps: adapter.steps,
    rank,
    trains_attention: trainsAttention,
    trains_mlp: trainsMlp,
    size_bytes: size,
  }
  yield* files.writeDirectory(folderOfCheckpoint(place), { ...parts, [infoFile]: utf8.encode(prettyJson(saved)) })
  return saved
})

/** Reads what is known about a checkpoint; undefined if it is missing or expired. */
export const infoOf = Effect.fnUntraced(function* (files: FileTree, place: CheckpointPlace) {
  const info = yield* savedInfo(files, place)
  return info === undefined || isExpired(info, yield* Clock.currentTimeMillis) ? undefined : info
})

/** Reads what is known about a checkpoint, also about an expired one whose files were not removed yet. */
const savedInfo = Effect.fnUntraced(function* (files: FileTree, place: CheckpointPlace) {
  const path = `${folderOfCheckpoint(place)}/${infoFile}`
  if (!(yield* files.exists(path))) return undefined
  const value = parsedJson(yield* files.readText(path))
  return yield* Effect.orElseSucceed(Schema.decodeUnknownEffect(CheckpointInfo)(value), () => undefined)
})

/** Changes the time at which a checkpoint expires. */
export const writeInfo = (files: FileTree, place: CheckpointPlace, info: CheckpointInfo) =>
  files.write(`${folderOfCheckpoint(place)}/${infoFile}`, prettyJson(info))

export const isExpired = ({ expires_at }: CheckpointInfo, nowMillis: number): boolean =>
  expires_at !== null && Date.parse(expires_at) <= nowMillis

/** Lists the checkpoints of a model, with those that were not named, and expired ones. */
export const checkpointsOf = Effect.fnUntraced(function* (files: FileTree, model: string) {
  const all: Array<Checkpoint> = []
  for (const kind of checkpointKinds)
    for (const name of yield* files.list(`models/${model}/${kind}`)) {
      const place = { model, kind, name }
      const info = yield* savedInfo(files, place)
      if (info !== undefined) all.push({ place, info })
    }
  return all
})

/** Reads the numbers and moments of a checkpoint of `weights`. */
export const readTraining = Effect.fnUntraced(function* (files: FileTree, place: CheckpointPlace, param: string) {
  const info = yield* infoOf(files, place)
  if (info === undefined) return yield* notFound(param, `there is no checkpoint ${addressOf(place)}`)
  return { info, bytes: yield* files.read(`${folderOfCheckpoint(place)}/${stateFile}`) }
})

export const removeCheckpoint = (files: FileTree, place: CheckpointPlace) => files.remove(folderOfCheckpoint(place))
