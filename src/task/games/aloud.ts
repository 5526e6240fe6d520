/** Thinking aloud, which changes nothing in any game. */
import { type Feedback } from "../Feedback.ts"
import { make, type TextEnv, type TextRules, type TextStep } from "../TextEnv.ts"

/** `think: …` and `thought: …`, as agents that reason in their actions write. */
export const isThought = (action: string): boolean => /^\s*(think|thought)\s*:/i.test(action)

/** What is said where nothing was won or lost. */
export const told = (message: string): Feedback => ({ score: 0, target: null, message })

/** A step that the game goes on after. */
export const goesOn = <State>(state: State, observation: string): TextStep & { readonly state: State } => ({
  state,
  observation,
  feedback: told(observation.split("\n")[0]),
  terminated: false,
})

/** A step that the game ends with; the target is what was to be found, if there is such a thing. */
export const ends = <State>(
  state: State,
  {
    score,
    message,
    target = null,
  }: { readonly score: number; readonly message: string; readonly target?: string | null },
): TextStep & { readonly state: State } => ({
  state,
  observation: null,
  feedback: { score, target, message },
  terminated: true,
})

/** An env from its rules, in which one may think aloud: that takes a step, and changes nothing else. */
export const game = <State>(rules: TextRules<State>): TextEnv =>
  make({
    ...rules,
    step: (state, action, random) => (isThought(action) ? goesOn(state, "OK.") : rules.step(state, action, random)),
  })
