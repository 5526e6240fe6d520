/**
 * Defines the protocol in which an agent delegates tasks. The agent gets a tool `delegate`; a call of this tool plays an
 * episode of a sub-agent, which sees only the task, and may itself delegate down to a maximum depth. `play` returns the
 * agent's rollout, followed by the rollouts of all sub-agents.
 *
 * @example
 * ```ts
 * const protocol = Delegating.make(lead, {
 *   agents: { searcher: { agent: searcher, description: "Finds facts.", maxSteps: 5, maxCalls: 20 } },
 *   maxDepth: 1,
 *   maxSteps: 10,
 * })
 * const [parent, ...children] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * children[0].meta.parentRolloutId // "first"
 * ```
 *
 * If a sub-agent fails, the result of the `delegate` call is its error message, so the delegating agent (the parent)
 * can react. A sub-agent that fails leaves no rollout, like any other episode that fails.
 */
import { type Duration, Effect, Schema } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import { decode } from "../../../base/config/Config.ts"
import { jsonValue, messageOf } from "../../../base/text/text.ts"
import * as TextEnv from "../../task/TextEnv.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { EpisodeToPlay, EpisodeFailure, Protocol } from "../Protocol.ts"
import type { Rollout } from "../Rollout.ts"
import { ProtocolError } from "../ProtocolError.ts"
import * as SingleAgent from "./SingleAgent.ts"
import type { CallSite, ToolHandler } from "./tools.ts"
import { cloneOf } from "./turn.ts"

/** An agent to which tasks can be delegated. The limits apply to each delegated episode. */
export interface SubAgent extends SingleAgent.SingleAgentOptions {
  /** The sub-agent. Each delegated episode is played by a new clone of it, with its own conversation. */
  readonly agent: Agent
  /** Tells the delegating model what the sub-agent is good for. */
  readonly description: string
  /** Makes the env of a task. By default, the task is the only observation, and the env ends after the first action. */
  readonly env?: (task: string) => TextEnv.TextEnv
  /** Returns the answer for the parent, which by default is the sub-agent's last action; null if there is no answer. */
  readonly result?: (rollout: Rollout) => string | null
}

export interface DelegatingOptions extends SingleAgent.SingleAgentOptions {
  /** The sub-agents, by the names that the model uses. */
  readonly agents: Readonly<Record<string, SubAgent>>
  /** The maximum depth of delegation. It is 1 by default: sub-agents do not delegate. */
  readonly maxDepth?: number
  /** The largest number of delegations in one rollout, 16 by default; further calls of `delegate` are refused. */
  readonly maxDelegations?: number
  /** The time limit of every tool call, and therefore of every delegated episode; 10 minutes by default. */
  readonly toolTimeout?: Duration.Input
}

export const toolName = "delegate"

const Arguments = Schema.Struct({ agent: Schema.String, task: Schema.String })

/** Describes the tool `delegate` to a model. */
export const specOf = (agents: DelegatingOptions["agents"]): ToolSpec => ({
  name: toolName,
  description: `Has a task done by another agent, who knows nothing but what you write. ${Object.entries(agents)
    .map(([name, { description }]) => `${name}: ${description}`)
    .join(" ")}`,
  parameters: {
    type: "object",
    properties: {
      agent: { type: "string", enum: Object.keys(agents) },
      task: { type: "string", description: "All that the agent has to know." },
    },
    required: ["agent", "task"],
    additionalProperties: false,
  },
})

/** Makes the default env of a task. It does not score the answer, since the parent's score will show its value. */
const answering = (task: string): TextEnv.TextEnv =>
  TextEnv.make<null>({
    id: "delegated",
    type: "delegated",
    begin: () => ({ state: null, observation: task }),
    step: (state) => ({
      state,
      observation: null,
      feedback: { score: 0, target: null, message: "" },
      terminated: true,
    }),
  })

const lastAction = ({ steps }: Rollout): string | null =>
  steps.findLast((step) => step._tag === "EnvironmentStep")?.action ?? null

const noAnswer = (name: string, { ending }: Rollout): string =>
  `${name} gave no answer${ending.truncated ? ` and was cut off (${ending.truncationReason})` : ""}.`

/** Plays an episode and its delegated episodes, and returns all rollouts, a parent before its children. */
const playTree = Effect.fnUntraced(function* (
  agent: Agent,
  episode: EpisodeToPlay,
  limits: SingleAgent.SingleAgentOptions,
  options: DelegatingOptions,
): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure> {
  const { agents, maxDepth = 1, maxDelegations = 16 } = options
  const depth = episode.parent?.depth ?? 0
  const mayDelegate = depth < maxDepth && Object.keys(agents).length > 0
  /** The rollouts of each delegated episode, in the order in which the delegations began. */
  const children: Array<ReadonlyArray<Rollout>> = []
  let delegations = 0
  /** Makes the error of a delegation that is refused, or fails. Its message becomes the result of the tool call. */
  const refused = (message: string) => new ProtocolError({ protocol: "Delegating", rollout: episode.id, message })

  /**
   * Plays the episode for a call of `delegate`; `text` is the call's arguments as JSON. Returns the answer for the parent.
   */
  const delegated = Effect.fnUntraced(function* (text: string, caller: CallSite) {
    if (!mayDelegate) return yield* refused(`No more delegation: the maximum depth of ${maxDepth} is reached.`)
    const json = yield* Effect.try({
      try: () => jsonValue(text),
      catch: (error) => refused(`The arguments of ${toolName} are not JSON (${messageOf(error)}).`),
    })
    const { agent: name, task } = yield* decode(Arguments, json, { source: toolName })
    if (!Object.hasOwn(agents, name)) {
      return yield* refused(`There is no agent "${name}"; there are ${Object.keys(agents).join(", ")}.`)
    }
    if (delegations === maxDelegations) {
      return yield* refused(`No more delegation: the limit of ${maxDelegations} is reached.`)
    }
    const number = delegations++
    const { agent: template, env = answering, result = lastAction, description: _, ...childLimits } = agents[name]
    /** Calls a function of the user, which is the `option` of a sub-agent. If it throws, the call of `delegate` fails. */
    const guarded = <A>(option: string, make: () => A): Effect.Effect<A, ProtocolError> =>
      Effect.try({
        try: make,
        catch: (error) => refused(`${name} failed: its ${option} threw: ${messageOf(error)}`),
      })
    const child: EpisodeToPlay = {
      id: `${episode.id}/sub/${number}`,
      env: yield* guarded("env", () => env(task)),
      envSeed: stream(episode.envSeed, "delegate", number).uint32(),
      samplingSeed: stream(episode.samplingSeed, "delegate", number).uint32(),
      tags: { ...episode.tags, delegate: name },
      parent: { rolloutId: caller.rolloutId, stepId: caller.stepId, depth: depth + 1 },
      ...(episode.onStep === undefined ? {} : { onStep: episode.onStep }),
    }
    const worker = yield* cloneOf(template)
    const rollouts = yield* Effect.mapError(playTree(worker, child, childLimits, options), ({ message }) =>
      refused(`${name} failed: ${message}`),
    )
    children[number] = rollouts
    const answer = yield* guarded("result", () => result(rollouts[0]))
    return answer === null ? { content: noAnswer(name, rollouts[0]), isError: true } : { content: answer }
  })

  const handler: ToolHandler = (call, caller) => delegated(call.arguments, caller)
  const rollout = yield* SingleAgent.play(agent, episode, {
    toolTimeout: "10 minutes",
    ...limits,
    tools: [...(limits.tools ?? []), ...(mayDelegate ? [specOf(agents)] : [])],
    handlers: { ...limits.handlers, [toolName]: handler },
  })
  return [rollout, ...children.flat()]
})

/** Makes the protocol. Each episode is played by clones of the agent and its sub-agents, so many can be played at a time. */
export const make = (agent: Agent, options: DelegatingOptions): Protocol => ({
  name: "Delegating",
  play: Effect.fnUntraced(function* (episode) {
    const { agents: _agents, maxDepth: _depth, maxDelegations: _delegations, ...limits } = options
    return yield* playTree(yield* cloneOf(agent), episode, limits, options)
  }),
})
