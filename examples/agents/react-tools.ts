// An agent with tools of its own: it writes its thoughts, calls the tools, and answers when it knows. The program prints
// all messages. The model here is a function; name another one on the command line, with its key in the environment:
//   npx node examples/agents/react-tools.ts [gpt-4.1-mini]
import { Lms, LmConfig, ReActAgent, type Scripted, SingleAgent, TextEnv, Tool } from "effect-rl"
import * as Node from "effect-rl/node"
import { Console, Effect, Schema } from "effect"

const prices = new Map([
  ["apple", 0.4],
  ["pear", 0.75],
])

const price = Tool.make({
  name: "price",
  description: "What one piece of a fruit costs.",
  parameters: Schema.Struct({ fruit: Schema.String }),
  run: ({ fruit }) => {
    const found = prices.get(fruit)
    return found === undefined ? Effect.fail(new Error(`there is no ${fruit}`)) : Effect.succeed(found)
  },
})

const multiply = Tool.make({
  name: "multiply",
  description: "The product of two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  run: ({ a, b }) => Effect.succeed(a * b),
})

const question = TextEnv.make<null>({
  id: "pears",
  type: "shopping",
  begin: () => ({ state: null, observation: "What do 6 pears cost? Answer with a number." }),
  step: (state, action) => ({
    state,
    observation: null,
    feedback: { score: Number(action) === 4.5 ? 1 : 0, target: "4.5", message: `You said ${action}.` },
    terminated: true,
  }),
})

/** Says what it does next by what it has been told last. */
const shopper: Scripted.Script = ({ messages }) => {
  const seen = messages.flatMap(({ role, content }) => (role === "user" ? [content.replace("Observation: ", "")] : []))
  switch (seen.length) {
    case 1:
      return "Thought: First, what one costs.\nAction: price[pears]"
    case 2:
      return "Thought: It knows fruits by one of them.\nAction: price[pear]"
    case 3:
      return `Thought: Six of them.\nAction: multiply[{"a": 6, "b": ${seen[2]}}]`
    default:
      return `Thought: That is all.\nAction: finish[${seen[3]}]`
  }
}

const lm = LmConfig.make({ model: process.argv[2] ?? "scripted:shopper", temperature: 0 })

const example = Effect.gen(function* () {
  const agent = yield* ReActAgent.make({ model: lm.model, tools: [price, multiply] })
  const { steps, totalReward } = yield* SingleAgent.play(agent, {
    id: "pears",
    env: question,
    envSeed: 1,
    samplingSeed: 1,
  })
  for (const step of steps) {
    if (step._tag === "EnvironmentStep") continue
    const { messages, completion, toolResults } = step.call
    if (step.index === 0) yield* Console.log(messages.at(-1)?.content)
    yield* Console.log(completion.content)
    for (const { toolName, content } of toolResults) yield* Console.log(`  ${toolName}: ${content}`)
  }
  yield* Console.log(`Score: ${totalReward}`)
})

await Effect.runPromise(
  example.pipe(Effect.provide(Lms.layer(lm, { scripts: { shopper } })), Effect.scoped, Effect.provide(Node.platform)),
)
