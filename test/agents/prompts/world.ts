import { Effect } from "effect"
import type { SearchState, Texts } from "../../../src/agents/prompts/candidates.ts"
import type { Reflection, Surroundings, TasksToPlay, TextToImprove, Trial } from "../../../src/agents/prompts/search.ts"

/** The number at the end of a text such as `plan 7`. */
const numberIn = (text: string): number => Number(text.split(" ").at(-1))

/**
 * A score between 0 and 1 without any randomness. The plan decides at even tasks, the answer at odd ones, so that different
 * candidates are best at different tasks.
 */
export const scoreOf = ({ plan, answer }: Texts, set: string, task: number): number => {
  const [own, other] = task % 2 === 0 ? [plan, answer] : [answer, plan]
  return (((numberIn(own) * 6) % 17) * 3 + ((numberIn(other) * (task + 2)) % 5) + (set === "train" ? 1 : 0)) / 60
}

export const trial = (task: number, score: number): Trial => ({
  task,
  score,
  tokens: 10,
  example: `${task}`,
  shot: null,
})

/** The surroundings of a search whose answers are given, and the requests that the search made, in order. */
export const scripted = (
  sizes: Surroundings<never, never>["sizes"],
  score: (texts: Texts, set: TasksToPlay["set"], task: number) => number,
  reflect: (request: TextToImprove, call: number) => Reflection["answer"],
) => {
  const requests: Array<TasksToPlay | TextToImprove> = []
  const states: Array<SearchState> = []
  let calls = 0
  const around: Surroundings<never, never> = {
    sizes,
    play: (request) =>
      Effect.sync(() => {
        requests.push(request)
        return request.tasks.map((task) => trial(task, score(request.texts, request.set, task)))
      }),
    reflect: (request) =>
      Effect.sync(() => {
        requests.push(request)
        return { answer: reflect(request, ++calls), tokens: 5 }
      }),
    changed: (state) => Effect.sync(() => void states.push(state)),
  }
  return { around, requests, states }
}
