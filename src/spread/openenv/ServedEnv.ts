/**
 * Declares what is served by OpenEnv's protocol: an env or a set of tasks, as copies that play one episode after another. The
 * walls for numbers and for words make it from their envs.
 */
import type { Effect, Scope } from "effect"
import type { EnvError } from "../../base/EnvError.ts"
import type { Plain } from "../../base/config/plain.ts"

/** What a client may say about a new episode. */
interface EpisodeOptions {
  readonly seed: number
  /** More data of the client, which it may have sent for any env. */
  readonly data: Plain
}

/** The result of a reset or a step, as a client gets it. */
export interface ServedObservation {
  readonly observation: Plain
  /** The reward; null after a reset. */
  readonly reward: number | null
  readonly done: boolean
}

/** A copy of the env. Its episodes follow each other. */
export interface ServedCopy {
  /** Begins an episode, and ends the one before. */
  readonly reset: (options: EpisodeOptions) => Effect.Effect<ServedObservation, EnvError>
  /** Takes a step by an action that fits the Schema. */
  readonly step: (action: Plain) => Effect.Effect<ServedObservation, EnvError>
  /** Calls a tool, which is not a step. */
  readonly call?: (
    name: string,
    parameters: Plain,
  ) => Effect.Effect<{ readonly content: string; readonly isError?: boolean }, EnvError>
}

/** A tool of an env, with the JSON Schema of its parameters. */
interface ServedTool {
  readonly name: string
  readonly description: string
  readonly parameters: Plain
}

/** An env that can be served. */
export interface ServedEnv {
  readonly name: string
  readonly description: string
  /** The JSON Schema of the actions. */
  readonly actions: Plain
  /** The JSON Schema of the observations. */
  readonly observations: Plain
  readonly tools: ReadonlyArray<ServedTool>
  /** Makes a copy. Closing the scope ends its episode. */
  readonly open: Effect.Effect<ServedCopy, EnvError, Scope.Scope>
}

/** The Schema of the data about an action or an observation, which all clients may send and which does nothing. */
const metadataSchema: Plain = { type: "object", additionalProperties: true, default: {} }

/** Makes the JSON Schema of an action or an observation from its properties, all of which are required. */
export const objectSchema = (title: string, properties: Plain): Plain => ({
  title,
  type: "object",
  properties: { ...properties, metadata: metadataSchema },
  required: Object.keys(properties),
  additionalProperties: false,
})
