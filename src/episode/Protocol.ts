/**
 * How agents and an env talk: who is asked when, what is done with a turn, when an episode ends. A protocol plays one
 * episode and gives its rollouts: one, or one for each agent that acted.
 */
import type { Effect, Scope } from "effect"
import type { AgentFailure } from "../agent/Agent.ts"
import type { EnvError } from "../env/EnvError.ts"
import type { TextEnv } from "../task/TextEnv.ts"
import type { ProtocolError } from "./ProtocolError.ts"
import type { Rollout, Step } from "./Rollout.ts"

/** One episode to play, in an env for one agent or for several. */
export interface Episode<Env = TextEnv> {
  /** The rollout's; those of several agents add to it. */
  readonly id: string
  readonly env: Env
  readonly envSeed: number
  readonly samplingSeed: number
  readonly groupId?: string | null
  readonly tags?: Readonly<Record<string, string>>
  /** Where it was delegated from. */
  readonly parent?: Parent
  /** Told of every step when it is done, in order. */
  readonly onStep?: (step: Step) => Effect.Effect<void>
}

export interface Parent {
  readonly rolloutId: string
  /** The call of the model that delegated; null where an agent without a model did. */
  readonly stepId: string | null
  /** Of the new rollout. */
  readonly depth: number
}

export type EpisodeFailure = AgentFailure | EnvError | ProtocolError

/** How episodes in envs of a kind are played: `TextEnv`, or `MultiTextEnv` for several players. */
export interface Protocol<Env = TextEnv> {
  readonly name: string
  readonly play: (episode: Episode<Env>) => Effect.Effect<ReadonlyArray<Rollout>, EpisodeFailure, Scope.Scope>
}
