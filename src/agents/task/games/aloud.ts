/**
 * Makes games in words, and their steps. In these games, an agent may write a thought as its action, which changes nothing.
 */
import { type Feedback } from "../Feedback.ts"
import { make, type TextEnv, type TextRules, type TextStep } from "../TextEnv.ts"

/** Recognises an action that is only a thought: `think: …` or `thought: …`. */
export const isThought = (action: string): boolean => /^\s*(think|thought)\s*:/i.test(action)

/** Makes feedback for a step that neither wins nor loses. */
export const neutral = (message: string): Feedback => ({ score: 0, target: null, message })

/** Makes a step after which the game continues. */
export const continues = <State>(state: State, observation: string): TextStep & { readonly state: State } => ({
  state,
  observation,
  feedback: neutral(observation.split("\n")[0]),
  terminated: false,
})

/** Makes the last step of a game. The target is the right answer, if there is one. */
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

/** Returns a sentence with the number of remaining things: "1 guess is left.", "3 guesses are left." */
export const remaining = (count: number, singular: string, plural = `${singular}s`): string =>
  count === 1 ? `1 ${singular} is left.` : `${count} ${plural} are left.`

/** Makes an env from its rules, in which an action that is a thought takes a step and changes nothing else. */
export const game = <State>(rules: TextRules<State>): TextEnv =>
  make({
    ...rules,
    step: (state, action, random) => (isThought(action) ? continues(state, "OK.") : rules.step(state, action, random)),
  })
