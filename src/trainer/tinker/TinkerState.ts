/** Holds the state of a Tinker server: what all models share, the models, and the sessions. */
import { Clock, Effect, type Latch, type Scope, type Semaphore } from "effect"
import type { BaseModel } from "../baseModel.ts"
import type * as Decoder from "../../decoder/networks/Decoder.ts"
import type { FileTree } from "../../run/store/FileTree.ts"
import { notFound } from "./answers.ts"
import type { AdamSteps } from "./training/AdamSteps.ts"
import type { AdapterInTraining } from "./models/AdapterInTraining.ts"
import type { InProgress } from "./waiting/counting.ts"
import type { Futures } from "./waiting/Futures.ts"
import type { ModelRecord } from "./models/modelFiles.ts"
import type { Samplers } from "./sampling/Samplers.ts"
import type { TrainingPrograms } from "./training/TrainingPrograms.ts"
import type { Turns } from "./waiting/turns.ts"

/** The bounds of what clients can ask for. */
export interface TinkerLimits {
  /** The largest body in bytes, also after it is decompressed. */
  readonly bodyBytes: number
  /** The most tokens of all examples of a request. */
  readonly requestTokens: number
  /** The most models that one API key may have, and the most of all keys together. */
  readonly modelsOfKey: number
  readonly models: number
  /** The most models in memory, and the most bytes of their adapters. */
  readonly loadedModels: number
  readonly loadedBytes: number
  /** The most requests of a model that are accepted before their turn. */
  readonly pendingOfModel: number
  /** The most requests of a model on disk, and their most bytes: those that wait, and those of the next update's gradient. */
  readonly requestsOnDisk: number
  readonly requestBytes: number
  /** The most bytes of the bodies of one API key that are read or handled at the same time. */
  readonly bodiesOfKey: number
  /** The most samples that one API key may wait for, and the most of one request. */
  readonly samplesOfKey: number
  /** The most bytes of the checkpoints of one model. */
  readonly checkpointBytes: number
  /** The most sessions; the oldest of the API key with the most sessions are forgotten first. */
  readonly sessions: number
  /** The most outcomes in memory, and the most numbers in them. */
  readonly outcomes: number
  readonly outcomeNumbers: number
}

export const defaultLimits: TinkerLimits = {
  bodyBytes: 64 * 1024 * 1024,
  requestTokens: 1024 * 1024,
  modelsOfKey: 256,
  models: 1024,
  loadedModels: 64,
  loadedBytes: 2 * 2 ** 30,
  pendingOfModel: 256,
  requestsOnDisk: 16_384,
  requestBytes: 4 * 2 ** 30,
  bodiesOfKey: 512 * 1024 * 1024,
  samplesOfKey: 1024,
  checkpointBytes: 16 * 2 ** 30,
  sessions: 4096,
  outcomes: 4096,
  outcomeNumbers: 2 ** 26,
}

export interface Session {
  readonly id: string
  readonly owner: string
  /** The sampling sessions, with the address of their weights; null for the base model. */
  readonly samplers: Map<string, string | null>
}

/** A model in memory. */
export interface TinkerModel {
  readonly record: ModelRecord
  readonly adapter: AdapterInTraining
  /** The digests of the accepted requests that were not performed, by their numbers. */
  readonly pending: Map<number, string>
  /** The sizes in bytes of the requests on disk, by their numbers. */
  readonly onDisk: Map<number, number>
  /** The number of the last request that was performed. */
  lastSeq: number
  /** The largest number of a request that a previous process accepted. Outcomes up to it may be on disk. */
  readonly repeatedUpTo: number
  /** The number of the last request that a previous process has performed. Requests up to it that are gone had failed. */
  readonly performedUpTo: number
  /** Whether the model was unloaded, or dropped from memory. */
  isClosed: boolean
  /** The number of callers that use the model now. */
  users: number
  /** The number of the last use, which orders the models by their uses. */
  lastUse: number
  /** Opens when a request was accepted. */
  readonly work: Latch.Latch
  /** One request is accepted at a time. */
  readonly accepting: Semaphore.Semaphore
}

export interface TinkerState {
  readonly base: Pick<BaseModel, "decoder" | "name">
  /** The name of the base model for clients. */
  readonly baseName: string
  readonly shape: Decoder.AdapterShape
  readonly maxLength: number
  readonly seed: number
  readonly programs: TrainingPrograms
  readonly adamSteps: AdamSteps
  readonly files: FileTree
  readonly turns: Turns
  readonly samplers: Samplers
  readonly futures: Futures
  readonly limits: TinkerLimits
  /** Whether clients have keys of their own. */
  readonly hasKeys: boolean
  /** The models that were not unloaded. */
  readonly records: Map<string, ModelRecord>
  /** The models in memory. */
  readonly models: Map<string, TinkerModel>
  /** The most models in memory. */
  readonly mostLoaded: number
  /** The number of uses of models. */
  modelUses: number
  /** Opens when a model has performed its last request. */
  readonly becameIdle: Latch.Latch
  /** One model is created or opened at a time. */
  readonly creating: Semaphore.Semaphore
  readonly sessions: Map<string, Session>
  /** The number of sessions that were ever created. */
  sessionCount: number
  /** The samples that are generated or wait, by API key. */
  readonly samplesInProgress: InProgress
  /** The bytes of bodies that are read or handled, by API key. */
  readonly bodiesInProgress: InProgress
  /** The number of requests to sample without a number of their own. */
  unnumberedSamples: number
  /** The time at which the server started. Only the ids of requests depend on it. */
  readonly startMillis: number
  /** Models and requests in progress end with this scope. */
  readonly scope: Scope.Scope
}

/**
 * Returns who takes a turn at the programs: the API key, so that one with many sessions gets no more time than another; without
 * keys, the session.
 */
export const clientOf = ({ hasKeys }: Pick<TinkerState, "hasKeys">, owner: string, session: string): string =>
  hasKeys ? owner : session

export const requestIdOf = (model: string, seq: number): string => `${model}/${seq}`

/** Returns the number of the request for which a model waits; undefined if it has its next request. */
export const missingSeq = ({ lastSeq, pending, performedUpTo }: TinkerModel): number | undefined =>
  pending.has(lastSeq + 1) || lastSeq < performedUpTo ? undefined : lastSeq + 1

/** Returns the settings of a model of an owner. Models of others look as if they did not exist. */
export const findRecord = ({ records }: TinkerState, id: string, owner: string) => {
  const record = records.get(id)
  if (record === undefined || record.owner !== owner)
    return Effect.fail(notFound("model_id", `there is no model "${id}"; it may have been unloaded`))
  return Effect.succeed(record)
}

export const findSession = ({ sessions }: TinkerState, id: string, owner: string) => {
  const session = sessions.get(id)
  return session === undefined || session.owner !== owner
    ? Effect.fail(notFound("session_id", `there is no session "${id}"; create a new one`))
    : Effect.succeed(session)
}

/** Returns the time as ISO 8601, for lists. No result depends on it. */
export const timestamp = (addSeconds = 0): Effect.Effect<string> =>
  Effect.map(Clock.currentTimeMillis, (now) => new Date(now + 1000 * addSeconds).toISOString())
