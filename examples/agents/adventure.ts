// An agent plays a text adventure that a Python program of 52 lines hosts. The model is a function here, which opens the chest
// as soon as it has the key, and walks at random before.
//   npx effect run examples/agents/adventure.ts
import { Datasets, HistoryAgent, LmConfig, Lms, Rng, Runtime, type Scripted } from "effect-rl"
import { Effect } from "effect"

/** Plays the model: it answers with one of the possible actions in its prompt. */
const walker: Scripted.Script = ({ messages }) => {
  const told = messages.at(-1)?.content ?? ""
  const [, list = ""] = [...told.matchAll(/^Possible actions: (.*)$/gm)].at(-1) ?? []
  const actions = list.split(", ")
  const goals = actions.filter((action) => action.startsWith("take") || action.startsWith("open"))
  const ways = actions.filter((action) => action.startsWith("go"))
  const random = Rng.stream(told.length, "walk", told.split("go ").length)
  return random.uniform() < 0.5 && goals.length > 0 ? goals[0] : ways[random.integer(ways.length)]
}

// "gpt-4.1-mini" asks OpenAI's, with OPENAI_API_KEY in the environment.
const lm = LmConfig.make({ model: "scripted:walker" })

const program = ["examples/foreign-envs/adventure.py"]
const houses = (options: object) =>
  Datasets.open({ type: "foreign", id: "adventure", command: ["python3", ...program], ...options }, { baseDir: "." })

export default Effect.gen(function* () {
  const train = yield* houses({ options: { rooms: 4 }, numTasks: 20 })
  const validation = yield* houses({ options: { rooms: 6 }, numTasks: 10 })
  return yield* Runtime.run({
    agent: HistoryAgent.make({ model: lm.model, systemPrompt: "Answer with one of the possible actions." }),
    train: train.tasks,
    validation: validation.tasks,
    runtime: { validationFreq: 10 },
  })
}).pipe(Effect.provide(Lms.layer(lm, { scripts: { walker } })))
