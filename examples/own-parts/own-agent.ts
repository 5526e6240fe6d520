// An agent of your own, which configs can name. It is made of a built-in one: it writes a hint before each observation.
//   npx effect run examples/own-parts/own-agent.ts
import { type Agent, AgentKind, Agents, HistoryAgent, Runtime } from "effect-rl"
import { Effect, Schema } from "effect"

const hinting = (inner: Agent.Agent, hint: string): Agent.Agent => ({
  ...inner,
  type: "hinting_agent",
  act: (input) => inner.act(input._tag === "Observation" ? { ...input, text: `${hint}\n${input.text}` } : input),
  // Each episode is played by a clone, which must be of the same kind.
  cloneForEpisode: (options) => Effect.map(inner.cloneForEpisode(options), (clone) => hinting(clone, hint)),
})

const kind = AgentKind.make({
  type: "hinting_agent",
  // The settings of all agents and of those with a memory, and one of its own.
  schema: Schema.Struct({
    ...AgentKind.fields("hinting_agent"),
    ...AgentKind.memoryFields,
    hint: Schema.NonEmptyString,
  }),
  memory: { _type: "history_list", maxLength: 100 },
  make: ({ hint, historyK }, { settings, memory }) =>
    Effect.gen(function* () {
      const inner = yield* HistoryAgent.make({ ...settings, memory: yield* memory, historyK })
      return hinting(inner, hint)
    }),
})

export default Runtime.fromConfig({
  train_dataset: { type: "codebook", num_tasks: 20, words: 4 },
  validation_dataset: { type: "codebook", num_tasks: 8, words: 4, seed: 7 },
  agent: { type: "hinting_agent", lm_config: { model: "scripted:reader" }, hint: "Answer with one word." },
  runtime: { validation_freq: 10 },
}).pipe(Effect.provideService(Agents.Kinds, [...Agents.builtIn, kind]))
