// An agent composed in code from a task, prompts and a model (here a function). Guests order "the usual", which the agent
// cannot know; the feedback names the drink, and an agent that writes it down brings the right one next time.
//   npx effect run examples/agents/reflexion.ts
import { LmConfig, Lms, Reflections, ReflexionAgent, Rng, Runtime, type Scripted, TaskSet, TextEnv } from "effect-rl"
import { Effect } from "effect"

const drinks = [
  ["Ada", "tea"],
  ["Blaise", "cocoa"],
  ["Grace", "milk"],
  ["Pierre", "lemonade"],
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

const guests = (seed: number, visits: number): TaskSet.TaskSet => {
  const random = Rng.stream(seed, "guests")
  const chosen = Array.from({ length: visits }, () => drinks[random.integer(drinks.length)])
  return TaskSet.of(
    "guests",
    chosen.map(([name, drink], visit) => guest(name, drink, visit)),
  )
}

const lookBack = "Reflect on this visit. Write one line for the next time: NAME drinks DRINK."

/** Plays the model: it writes down the drink from the feedback, and later answers from its notes. */
const waiter: Scripted.Script = ({ messages }) => {
  const told = messages.at(-1)?.content ?? ""
  const name = [...told.matchAll(/(\w+): The usual/g)].at(-1)?.[1]
  const [line, drink] = new RegExp(`${name} drinks (\\w+)`).exec(told) ?? ["Nothing to learn", "coffee"]
  return messages[0].content === lookBack ? `${line}.` : drink
}

// "gpt-4.1-mini" asks OpenAI's, with OPENAI_API_KEY in the environment.
const lm = LmConfig.make({ model: "scripted:waiter" })

export default Runtime.run({
  agent: ReflexionAgent.make({
    model: lm.model,
    systemPrompt: "You are a waiter. Answer with one word: the drink that you bring.",
    reflectionSystemPrompt: lookBack,
    reflectOnFailureOnly: true,
    memory: Reflections.make({ maxReflections: 20 }),
    historyK: 0,
  }),
  train: guests(1, 24),
  validation: guests(2, 12),
  runtime: { runValidationAtStart: true, validationFreq: 8, checkpointEveryEpisodes: 8 },
}).pipe(Effect.provide(Lms.layer(lm, { scripts: { waiter } })))
