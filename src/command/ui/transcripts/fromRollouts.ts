/** Makes the transcript of an episode from its rollouts. These are pure functions; `transcripts.ts` reads the rollouts. */
import * as Credit from "../../../agents/episode/samples/credit.ts"
import {
  type AgentStep,
  type EnvironmentStep,
  type RolloutEnding,
  parseFailureOf,
  type Rollout,
  type RolloutStep,
} from "../../../agents/episode/Rollout.ts"
import type { Sample } from "../../../agents/episode/samples/Sample.ts"
import type { ChatMessage, Usage } from "../../../agents/lm/Chat.ts"
import type { ListedEpisode } from "./Episode.ts"
import { tokensOf } from "./tokens.ts"
import type { Call, PlayedRollout, TokenSpan, ToolUse, Transcript, TranscriptTurn } from "./Transcript.ts"

export const nothingUsed: Transcript["usage"] = { calls: 0, inputTokens: 0, outputTokens: 0, reasoningTokens: 0 }

export const addUsage = (all: Transcript["usage"], one: Usage): Transcript["usage"] => ({
  calls: all.calls + 1,
  inputTokens: all.inputTokens + one.inputTokens,
  outputTokens: all.outputTokens + one.outputTokens,
  reasoningTokens: all.reasoningTokens + one.reasoningTokens,
})

export const endingOf = ({
  terminated,
  truncated,
}: Pick<RolloutEnding, "terminated" | "truncated">): PlayedRollout["ending"] =>
  terminated ? "terminated" : truncated ? "truncated" : null

/** Returns the number of messages at the beginning of a prompt that are equal to those of the previous prompt. */
export const keptOf = (before: ReadonlyArray<ChatMessage>, messages: ReadonlyArray<ChatMessage>): number => {
  const texts = before.map((message) => JSON.stringify(message))
  const differs = messages.findIndex((message, at) => JSON.stringify(message) !== texts[at])
  return differs < 0 ? messages.length : differs
}

/** The rollouts of an episode, and the data about them in the samples. */
interface Family {
  /** The first rollout, and all rollouts that were delegated below it. */
  readonly rollouts: ReadonlyArray<Rollout>
  /** The credits of the rollouts, by their ids. */
  readonly credits: { readonly [Way in "own" | "parents" | "mixed"]: ReadonlyMap<string, number> }
  readonly samples: ReadonlyArray<Sample>
  /** The tokens of the steps with their advantages, by the steps' ids. */
  readonly tokens: ReadonlyMap<string, ReadonlyArray<TokenSpan>>
}

/**
 * Makes the transcript of the first rollout and of the rollouts that it delegated. Credits and advantages come from the
 * samples.
 */
export const fromRollouts = (
  episode: ListedEpisode,
  all: ReadonlyArray<Rollout>,
  allSamples: ReadonlyArray<Sample> = [],
): Transcript => {
  const rollouts = familyOf(all[0], all)
  const [first] = rollouts
  const steps = rollouts.flatMap((rollout) => rollout.steps).filter((step) => step._tag === "AgentStep")
  const byId = new Map(steps.map((step) => [step.id, step]))
  const samples = allSamples.filter(({ rolloutId }) => rollouts.some(({ id }) => id === rolloutId))
  const tokens = new Map(samples.flatMap((sample) => [...tokensOf(sample, byId)]))
  const credits = {
    own: Credit.own(rollouts),
    parents: Credit.parents(rollouts),
    mixed: Credit.mixed({ share: 0.5, discount: 1 })(rollouts),
  }
  const advantages = Array.from(tokens.values()).flatMap((spans) => spans.map(({ advantage }) => Math.abs(advantage)))
  const hasTokens = samples.some(({ advantages }) => advantages !== undefined)
  return {
    episode,
    envType: first.meta.envType,
    seeds: { env: first.meta.envSeed, sampling: first.meta.samplingSeed },
    tags: first.meta.tags,
    usage: steps.reduce((sum, { call }) => addUsage(sum, call.completion.usage), nothingUsed),
    played: playedOf({ rollouts, credits, samples, tokens }, first),
    largest: advantages.length === 0 ? null : advantages.reduce((largest, one) => Math.max(largest, one), 0),
    advantages: advantages.length === 0 ? null : hasTokens ? "tokens" : "credit",
    hint: null,
  }
}

/** Makes the turns and credits of a rollout. Each rollout that it delegated is inside the call that delegated it. */
const playedOf = (family: Family, rollout: Rollout): PlayedRollout => {
  const { id, meta, totalReward, length, ending } = rollout
  const { own, parents, mixed } = family.credits
  return {
    id,
    name: meta.tags.delegate ?? meta.agent,
    depth: meta.depth,
    player: meta.player,
    model: meta.model,
    return: totalReward,
    length,
    ending: endingOf(ending),
    reason: ending.truncationReason,
    credits: {
      own: own.get(id) ?? totalReward,
      parents: parents.get(id) ?? totalReward,
      mixed: mixed.get(id) ?? totalReward,
      sampled: family.samples.find(({ rolloutId }) => rolloutId === id)?.credit ?? null,
    },
    turns: turnsOf(family, rollout),
  }
}

const turnsOf = (family: Family, rollout: Rollout): ReadonlyArray<TranscriptTurn> => {
  const children = family.rollouts.filter(({ meta }) => meta.parentRolloutId === rollout.id)
  const bySite = Map.groupBy(children, siteOf)
  const samples = family.samples.filter(({ rolloutId }) => rolloutId === rollout.id)
  let before: ReadonlyArray<ChatMessage> = []
  let cumulative = 0
  const callOf = (step: AgentStep): Call => {
    const call = callWithout(step, before)
    before = step.call.messages
    const below = bySite.get(step.id) ?? []
    bySite.delete(step.id)
    return {
      ...call,
      tokens: family.tokens.get(step.id) ?? null,
      children: below.map((child) => playedOf(family, child)),
    }
  }
  const turns = Credit.turnsOf(rollout).map((all, index, turns): TranscriptTurn => {
    const calls = all.filter((step) => step._tag === "AgentStep").map(callOf)
    const reward = all.reduce((sum, step) => sum + step.reward, 0)
    cumulative += reward
    const sample = samples.find(({ turnId }) => turnId === all[0].turnId)
    const later = turns.slice(index + 1).flat()
    const hasLaterStep = later.some((step) => step._tag === "EnvironmentStep")
    const [credit, weight] = [sample?.credit ?? null, sample?.weight ?? null]
    return { ...turnWithout(all, hasLaterStep), calls, reward, cumulative, credit, weight }
  })
  const strays = Array.from(bySite.values()).flat()
  return withStrays(
    turns,
    strays.map((child) => playedOf(family, child)),
  )
}

/** Collects a rollout and all rollouts delegated below it, each once, even if parents form a cycle. */
const familyOf = (root: Rollout, rollouts: ReadonlyArray<Rollout>): ReadonlyArray<Rollout> => {
  // The copy has no parent, so that it cannot be its own descendant.
  const first: Rollout = { ...root, meta: { ...root.meta, parentRolloutId: null } }
  const family = new Map([[first.id, first]])
  for (const { id } of family.values()) {
    for (const rollout of rollouts) {
      if (rollout.meta.parentRolloutId === id && !family.has(rollout.id)) family.set(rollout.id, rollout)
    }
  }
  return Array.from(family.values())
}

/** Returns the id of the parent's step in which a rollout was delegated; null if the rollout doesn't contain that id. */
const siteOf = ({ steps }: Rollout): string | null => steps.find((step) => step._tag === "AgentStep")?.parentId ?? null

/** Adds delegated rollouts to the last call of the turns, if it is not known which call delegated them (`strays`). */
const withStrays = (
  turns: ReadonlyArray<TranscriptTurn>,
  strays: ReadonlyArray<PlayedRollout>,
): ReadonlyArray<TranscriptTurn> => {
  const at = turns.findLastIndex(({ calls }) => calls.length > 0)
  if (strays.length === 0 || at < 0) return turns
  const { calls } = turns[at]
  const last = calls[calls.length - 1]
  const whole = { ...last, children: [...last.children, ...strays] }
  return turns.with(at, { ...turns[at], calls: calls.with(calls.length - 1, whole) })
}

/** Describes a call, without its tokens and its delegated rollouts. `before` is the prompt of the previous call. */
const callWithout = (step: AgentStep, before: ReadonlyArray<ChatMessage>): Omit<Call, "tokens" | "children"> => {
  const { id, call, toolResults, reward } = step
  const { completion } = call
  const failure = parseFailureOf(step)
  const kept = keptOf(before, call.messages)
  const outside = new Map(toolResults.map((result) => [result.toolCallId, result]))
  const inside = new Map(call.toolResults.map((result) => [result.toolCallId, result]))
  const tools = completion.toolCalls.map((used): ToolUse => {
    const result = inside.get(used.id) ?? outside.get(used.id)
    const by = inside.has(used.id) ? "internal" : outside.has(used.id) ? "external" : null
    const answer = result === undefined ? null : { content: result.content, isError: result.isError }
    return { name: used.name, arguments: used.arguments, result: answer, by }
  })
  return {
    id,
    purpose: call.purpose,
    target: call.target,
    model: completion.model,
    kept,
    messages: call.messages.slice(kept),
    said: completion.content,
    tools,
    refused: failure === null ? null : { feedback: failure.feedback, reward },
    incomplete: call.incomplete,
    finish: completion.finishReason,
    usage: completion.usage,
    attempts: completion.attempts,
    failed: null,
  }
}

/**
 * Describes what the env showed and did in the steps of a turn. `hasLaterStep` tells whether a later turn has an env step.
 */
const turnWithout = (
  steps: ReadonlyArray<RolloutStep>,
  hasLaterStep: boolean,
): Omit<TranscriptTurn, "calls" | "reward" | "cumulative" | "credit" | "weight"> => {
  const last = steps[steps.length - 1]
  const acted: EnvironmentStep | undefined = steps.find((step) => step._tag === "EnvironmentStep")
  const asked = steps.find((step) => step._tag === "AgentStep")
  const shown = asked?.call.purpose === "reflection" ? null : (asked?.call.messages.at(-1)?.content ?? null)
  return {
    observation: acted?.observation ?? shown,
    action: acted?.action ?? null,
    feedback: acted === undefined ? null : { ...acted.feedback, extra: acted.feedback.extra ?? null },
    seen: hasLaterStep ? null : (acted?.nextObservation ?? null),
    ending: endingOf(last),
    reason: last.truncationReason,
    info: acted?.info ?? null,
    failed: null,
    advantage: null,
    said: null,
  }
}
