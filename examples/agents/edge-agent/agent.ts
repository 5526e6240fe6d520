// An agent for a worker: a waiter who notes what each guest drinks. The same run plays in a worker and in Node.
import { LmConfig, Lms, Reflections, ReflexionAgent, Runtime, TaskSet, TextEnv } from "effect-rl"
import { Effect } from "effect"

const drinks = [
  ["Ada", "tea"],
  ["Blaise", "cocoa"],
  ["Grace", "milk"],
] as const

const guest = (name: string, drink: string, visit: number): TextEnv.TextEnv =>
  TextEnv.make({
    id: `${name}-${visit}`,
    type: "café",
    begin: () => ({ state: null, observation: `${name}: The usual, please.` }),
    step: (state, brought) => ({
      state,
      observation: null,
      feedback:
        brought === drink
          ? { score: 1, target: drink, message: "Thank you!" }
          : { score: 0, target: drink, message: `No, ${name} drinks ${drink}.` },
      terminated: true,
    }),
  })

const visits = Array.from({ length: 12 }, (_, visit) => drinks[visit % drinks.length])
const guests = TaskSet.of(
  "guests",
  visits.map(([name, drink], visit) => guest(name, drink, visit)),
)

/** A model at an address that speaks OpenAI's protocol, and the key that the server wants. */
export interface Model {
  readonly model: string
  readonly baseUrl: string
  readonly apiKey?: string | null
}

/** The run until so many guests were served. */
export const waiter = (served: number, model: Model) => {
  const lm = LmConfig.make({ ...model, temperature: 0 })
  return Runtime.run({
    name: "waiter",
    agent: ReflexionAgent.make({
      model: lm.model,
      systemPrompt: "You are a waiter. Answer with one word: the drink that you bring.",
      reflectionSystemPrompt: "Reflect on this visit. Write one line for the next time: NAME drinks DRINK.",
      reflectOnFailureOnly: true,
      memory: Reflections.make({ maxReflections: 20 }),
      historyK: 0,
    }),
    train: guests,
    runtime: { maxEnvsToVisit: served },
    output: { saveRollouts: true },
  }).pipe(Effect.provide(Lms.layer(lm)))
}
