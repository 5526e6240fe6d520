/**
 * Defines the messages between the page "Play" and its web worker, which trains. The page sends requests, and the worker
 * sends answers.
 */
import { Schema } from "effect"
import type { ActionSpace } from "../../../rl/env/Space.ts"

const within = Schema.Finite.pipe(Schema.check(Schema.isBetween({ minimum: -1, maximum: 1 })))

/** Starts a training, unless one is in progress. */
const Train = Schema.TaggedStruct("Train", {
  /** The config as YAML text, in the form that `effect run` reads. */
  config: Schema.String,
  /** The folder of a saved training to resume; null for a new training. */
  resume: Schema.NullOr(Schema.String),
})
export type Train = typeof Train.Type

/** Opens a game with the policy of a run's checkpoint. */
const OpenRequest = Schema.TaggedStruct("Open", {
  /** The run's `config.yaml`. */
  config: Schema.String,
  /** The name of the checkpoint, and its files with their paths in the run's folder. */
  checkpoint: Schema.String,
  files: Schema.Array(Schema.Struct({ path: Schema.String, bytes: Schema.Uint8Array })),
})
export type OpenRequest = typeof OpenRequest.Type

/** How a person pulls at a body: see `BodyPull`. */
const Pull = Schema.Union([
  Schema.TaggedStruct("Pointer", { at: Schema.Tuple([Schema.Finite, Schema.Finite]) }),
  Schema.TaggedStruct("Push", { right: within, up: within }),
])

/** Takes one step of the game. */
const Act = Schema.TaggedStruct("Act", {
  /** The action of a person for one step of the game; with null, the policy acts. */
  action: Schema.NullOr(Schema.Array(Schema.Finite)),
  /** The pull or push by which a person moves the body; null if there is none. */
  pull: Schema.optionalKey(Schema.NullOr(Pull)),
})
export type Act = typeof Act.Type

export const PlayRequest = Schema.Union([
  Train,
  /** Stops the training; the worker then saves it. */
  Schema.TaggedStruct("Stop", {}),
  /** Requests an episode of the current policy, which the worker plays between two updates. */
  Schema.TaggedStruct("Watch", {}),
  /** Requests the list of the saved trainings. */
  Schema.TaggedStruct("List", {}),
  Schema.TaggedStruct("Load", { directory: Schema.String }),
  Schema.TaggedStruct("Remove", { directory: Schema.String }),
  OpenRequest,
  Act,
  /** Begins the next episode of the game. */
  Schema.TaggedStruct("Restart", {}),
])
export type PlayRequest = typeof PlayRequest.Type

/** A training that the browser has stored. */
interface SavedTraining {
  readonly directory: string
  readonly config: string
}

/** One step of an episode of the game. */
export interface GameStep {
  /** The state in which the action was taken, null if there are moments of a body instead; and the action. */
  readonly state: unknown
  readonly action: ReadonlyArray<number>
  readonly reward: number
  /** The sum of the rewards of the episode so far, and the number of its steps. */
  readonly total: number
  readonly length: number
  readonly terminated: boolean
  readonly truncated: boolean
  /** The pictures of a body during the step, and the simulated seconds of each; undefined if the env has no body. */
  readonly moments?: ReadonlyArray<unknown>
  readonly seconds?: number
  readonly terms?: Readonly<Record<string, number>>
}

export type PlayAnswer =
  | {
      readonly _tag: "Started"
      readonly directory: string
      readonly env: string
      readonly step: number
      readonly totalSteps: number
    }
  | {
      readonly _tag: "Progress"
      readonly step: number
      /** The mean return of the last hundred episodes; null if none has ended yet. */
      readonly meanReturn: number | null
      readonly stepsPerSecond: number | null
    }
  | {
      readonly _tag: "Episode"
      readonly step: number
      /** The content of `trajectories.json.gz`. */
      readonly trajectories: Uint8Array
      /** The text of the module that renders the env; undefined if it has none. */
      readonly ui: string | undefined
    }
  | {
      readonly _tag: "Ended"
      readonly reason: "finished" | "stopped" | "failed"
      /** The folder of the training; undefined if it failed before it had one. */
      readonly directory: string | undefined
      /** The error's message, if the training failed. */
      readonly message: string | undefined
      readonly digest: string | undefined
    }
  | { readonly _tag: "Listed"; readonly directories: ReadonlyArray<string> }
  | { readonly _tag: "Loaded"; readonly saved: SavedTraining }
  | {
      readonly _tag: "Opened"
      readonly env: string
      /** The step of the training whose weights the policy has. */
      readonly step: number
      readonly actionSpace: ActionSpace
      /** The text of the module that renders the steps, or the moments of a body. */
      readonly ui: string | undefined
      /** The size of the picture of a body, in whose unit a pointer is; undefined if the env has no body. */
      readonly picture: { readonly width: number; readonly height: number } | undefined
    }
  | { readonly _tag: "Acted"; readonly step: GameStep }
  /** Reports that a request could not be served. */
  | { readonly _tag: "Refused"; readonly message: string }
