/**
 * Defines protocols. A protocol plays one episode of agents in an env: it decides when each agent acts, what happens with the
 * agent's answer, and when the episode ends. It returns the rollouts (the records of the steps), one for each agent that took
 * part. The folder `protocols/` has four: `SingleAgent`, `MultiAgentSync`, `SelfPlay` and `Delegating`.
 */
import type { Effect, Scope } from "effect"
import type { AgentFailure } from "../agent/Agent.ts"
import type { EnvError } from "../../base/EnvError.ts"
import type { TextEnv } from "../task/TextEnv.ts"
import type { ProtocolError } from "./ProtocolError.ts"
import type { Rollout, RolloutStep } from "./Rollout.ts"

/** An episode to play, in an env for one agent or for several. */
export interface EpisodeToPlay<Env = TextEnv> {
  /** The id of the rollout. With several agents, the ids of all their rollouts begin with it. */
  readonly id: string
  readonly env: Env
  /** The seed of the env's randomness. */
  readonly envSeed: number
  /** The seed of the model's sampling. */
  readonly samplingSeed: number
  /** The id of the group of rollouts that are compared with each other; null or left out if there is no group. */
  readonly groupId?: string | null
  readonly tags?: Readonly<Record<string, string>>
  /** The step of another rollout in which an agent delegated this episode; left out if it was not delegated. */
  readonly parent?: Parent
  /** Receives every step when it is complete, in order. */
  readonly onStep?: (step: RolloutStep) => Effect.Effect<void>
}

/** A step of a rollout in which an agent delegated an episode to a sub-agent. */
export interface Parent {
  readonly rolloutId: string
  /** The id of the step whose call of the model delegated this episode; null if the agent has no model. */
  readonly stepId: string | null
  /** The depth of delegation of the delegated episode: 1 if the delegating rollout was not delegated itself. */
  readonly depth: number
}

export type EpisodeFailure = AgentFailure | EnvError | ProtocolError

/** Plays episodes in envs of a type: `TextEnv`, or `MultiTextEnv` for several players. */
export interface Protocol<Env = TextEnv> {
  readonly name: string
  readonly play: (episode: EpisodeToPlay<Env>) => Effect.Effect<ReadonlyArray<Rollout>, EpisodeFailure, Scope.Scope>
}
