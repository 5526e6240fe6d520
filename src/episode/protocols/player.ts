import { Effect } from "effect"
import type { Agent, AgentFailure, AgentInput } from "../../agent/Agent.ts"
import type { Feedback } from "../../task/Feedback.ts"
import { CallContext } from "../../lm/Lm.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { SamplingSeed } from "../../lm/middleware/seeded.ts"
import { stream } from "../../rng/Rng.ts"
import type { Episode } from "../Protocol.ts"
import { type Named, recording, type Recording } from "./recording.ts"
import type { Ending } from "../Rollout.ts"
import { opening } from "./tools.ts"
import { lookBack } from "./turn.ts"

/** What a player did, of which it isn't known yet what it led to. */
export interface Pending {
  readonly turnId: string
  readonly agentStepIds: ReadonlyArray<string>
  readonly observation: string
  readonly action: string
  readonly reward: number
}

/** What came to a player since its last step. */
export interface Told {
  observation: string | null
  readonly feedback: Array<Feedback>
  info: Readonly<Record<string, unknown>> | undefined
}

/** One of several players, between its agent and the env. */
export interface Player {
  readonly name: string
  readonly agent: Agent
  readonly recording: Recording
  /** Its own, so that an agent that plays several doesn't say the same at the same time. */
  readonly samplingSeed: number
  readonly told: Told
  /** What its agent is shown next. */
  shown: AgentInput
  pending: Pending | null
  readonly look: () => string
  /** It is to move: its agent is shown what it sees, and at the first time what it may call. */
  readonly turnTo: (tools: ReadonlyArray<ToolSpec>) => void
  /** It has acted, and sees nothing yet of what that led to. */
  readonly acted: (what: Pending) => void
  /** Makes a step of what it did and what came of it, if there is anything. */
  readonly settle: (ending: Ending, context: CallContext) => Effect.Effect<void, AgentFailure>
  readonly lookBack: (context: CallContext) => Effect.Effect<void, AgentFailure>
}

/** Of several moves, as of one: scores add up, and what was said follows each other. */
export const merged = (all: ReadonlyArray<Feedback>): Feedback => {
  if (all.length === 1) return all[0]
  const extra = Object.fromEntries(all.flatMap((feedback) => Object.entries(feedback.extra ?? {})))
  return {
    score: all.reduce((sum, { score }) => sum + score, 0),
    target: all.findLast(({ target }) => target !== null)?.target ?? null,
    message: all.flatMap(({ message }) => (message === "" ? [] : [message])).join("\n"),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}

export const playerOf = (name: string, agent: Agent, episode: Episode<Named>): Player => {
  const id = `${episode.id}/${name}`
  const making = recording({ ...episode, groupId: episode.groupId ?? episode.id }, id)
  const samplingSeed = stream(episode.samplingSeed, "player", name).uint32()
  const told: Told = { observation: null, feedback: [], info: undefined }
  const seeded = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, SamplingSeed, samplingSeed)

  let isNew = true
  const player: Player = {
    name,
    agent,
    recording: making,
    samplingSeed,
    told,
    shown: { _tag: "Observation", text: "" },
    pending: null,
    look: () => told.observation ?? "",
    turnTo: (tools) => {
      player.shown = isNew ? opening(player.look(), tools) : { _tag: "Observation", text: player.look() }
      isNew = false
    },
    acted: (what) => {
      player.pending = what
      told.observation = null
    },
    settle: (ending, context) =>
      Effect.gen(function* () {
        const { pending } = player
        const { observation, info } = told
        const feedback = merged(told.feedback)
        player.pending = null
        told.feedback.length = 0
        told.info = undefined
        const { terminated, truncated } = ending
        const led = { observation, feedback, terminated, truncated, ...(info === undefined ? {} : { info }) }
        if (pending === null) {
          // Before its first action: only what is worth something is kept.
          if (feedback.score === 0) return
          const turnId = making.beginTurn()
          const nothing = { turnId, agentStepIds: [], observation: "", action: "", actionReward: 0 }
          return yield* making.acted({ ...nothing, led, ending })
        }
        const { action, reward: actionReward, ...rest } = pending
        yield* agent
          .observe({ action, observation, feedback: agent.training ? feedback : null, done: terminated || truncated })
          .pipe(seeded, Effect.provideService(CallContext, context))
        yield* making.acted({ ...rest, action, actionReward, led, ending })
      }),
    lookBack: (context) => seeded(lookBack(agent, making, context)),
  }
  return player
}
