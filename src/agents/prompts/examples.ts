/**
 * Writes played episodes as texts: as examples for the reflection model, with observations, calls of tools, actions and
 * feedback, and as few-shot examples with an input and an output. Long parts are shortened. These are pure functions.
 */
import type { EpisodeToScore, TimedStep } from "../evaluate/PlayedEpisode.ts"
import type { RolloutStep } from "../episode/Rollout.ts"
import type { Trial } from "./search.ts"

/** The largest number of characters of a part of an example, and of a whole example. */
const mostOfPart = 4000
const mostOfExample = 20_000

/** Shortens a long text to its beginning and its end. */
export const shortened = (text: string, most: number): string => {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  return `${text.slice(0, half)} [… ${text.length - 2 * half} characters left out …] ${text.slice(-half)}`
}

/** Writes a labelled part on lines without empty ones, so that an empty line always ends an episode's step. */
const part = (label: string, text: string): string =>
  `${label}: ${shortened(text.trim().replace(/\n\s*\n/g, "\n"), mostOfPart)}`

/** Describes the calls of tools in a step, and the thoughts of the model beside its action. */
const traceOf = (step: RolloutStep): ReadonlyArray<string> => {
  if (step._tag !== "AgentStep") return []
  const { completion, toolResults, parsed } = step.call
  const results = [...toolResults, ...step.toolResults]
  const calls = completion.toolCalls.map(({ id, name, arguments: input }) => {
    const result = results.find(({ toolCallId }) => toolCallId === id)
    return part("TOOL", `${name} ${input} → ${result?.content ?? "(no result)"}`)
  })
  const isActionAlone = parsed?._tag === "Parsed" && parsed.action.trim() === completion.content.trim()
  const thought = completion.content.trim() === "" || isActionAlone ? [] : [part("ANSWER", completion.content)]
  return [...thought, ...calls]
}

const stepText = ({ observation, action, feedback }: TimedStep, trace: ReadonlyArray<string>): string =>
  [
    part("OBSERVATION", observation),
    ...trace,
    part("ACTION", action ?? "(none)"),
    ...(feedback.message.trim() === "" ? [] : [part("FEEDBACK", feedback.message)]),
  ].join("\n")

/** Groups the trace of the first rollout by the scored step that it led to. */
const tracesOf = ({ rollouts, steps }: EpisodeToScore): ReadonlyArray<ReadonlyArray<string>> => {
  const groups: Array<Array<string>> = [[]]
  for (const step of rollouts[0]?.steps ?? []) {
    if (step._tag === "EnvironmentStep") groups.push([])
    else for (const line of traceOf(step)) groups.at(-1)?.push(line)
  }
  return steps.map((_, at) => groups[at] ?? [])
}

/**
 * Leaves addresses out of the message of an error. The address of a server explains no answer, is no business of the reflection
 * model, and would change the search.
 */
const withoutAddresses = (message: string): string =>
  message.replace(/\bhttps?:\/\/[^\s"'<>]*[^\s"'<>:;,.]/g, "its server")

/** Writes an episode as an example for the reflection model. */
export const exampleText = (played: EpisodeToScore): string => {
  const traces = tracesOf(played)
  const steps = played.steps.map((step, at) => stepText(step, traces[at]))
  const failure =
    played.error === null ? [] : [part("FEEDBACK", `the episode failed: ${withoutAddresses(played.error.message)}`)]
  return shortened([...steps, ...failure].join("\n"), mostOfExample)
}

/** Returns the input and the output of an episode of one step, for a few-shot example; null for other episodes. */
export const shotOf = ({ steps, error }: EpisodeToScore): Trial["shot"] => {
  const [step] = steps
  if (error !== null || steps.length !== 1 || step.action === null) return null
  return { input: shortened(step.observation, mostOfPart), output: shortened(step.action, mostOfPart) }
}
