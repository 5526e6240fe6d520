// An agent that delegates: the lead can't multiply, so it asks calculators. Its rollout and those of the calculators
// become training samples; each calculator is credited with half of the lead's reward for the answer.
//   npx node examples/agents/delegation.ts [DIRECTORY]
import { NodeFileSystem } from "@effect/platform-node"
import { Credit, Delegating, Rollouts, Samples, Scripted, TextEnv, ToolAgent } from "effect-rl"
import { Effect, FileSystem, Stream } from "effect"

const directory = process.argv[2] ?? "results/delegation"

const question = TextEnv.make<null>({
  id: "larger",
  type: "arithmetic",
  begin: () => ({ state: null, observation: "Which is larger, 17 x 23 or 19 x 21? Answer with the product." }),
  step: (state, action) => ({
    state,
    observation: null,
    feedback: { score: action === "399" ? 1 : 0, target: "399", message: `You said ${action}.` },
    terminated: true,
  }),
})

/** Both models, as functions of what they are asked; `Lms` and a config would make it a real one. */
const models = Scripted.layer(({ model, messages, tools }) => {
  const products = Array.from(messages[0].content.matchAll(/(\d+) x (\d+)/g))
  if (model === "calculator") return String(Number(products[0][1]) * Number(products[0][2]))
  const results = messages.flatMap(({ role, content }) => (role === "tool" ? [Number(content)] : []))
  if (results.length > 0) return String(Math.max(...results))
  return {
    content: "I have them multiplied.",
    toolCalls: products.map(([task], at) => ({
      id: `call-${at}`,
      name: tools[0].name,
      arguments: JSON.stringify({ agent: "calculator", task }),
    })),
  }
})

const example = Effect.gen(function* () {
  const lead = yield* ToolAgent.make({ model: "lead", traceTokens: true })
  const calculator = yield* ToolAgent.make({ model: "calculator", traceTokens: true })
  const protocol = Delegating.make(lead, {
    agents: { calculator: { agent: calculator, description: "Multiplies two numbers.", maxSteps: 1, maxCalls: 2 } },
    maxDepth: 1,
    maxSteps: 3,
  })
  const rollouts = yield* protocol.play({ id: "larger", env: question, envSeed: 1, samplingSeed: 1 })
  const credit = Credit.episodic(Credit.mixed({ share: 0.5, discount: 1 }))
  const samples = yield* Samples.of(rollouts, { credit, maxSeqLen: 4096 })

  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(directory, { recursive: true })
  yield* fs.writeFileString(`${directory}/rollouts.jsonl`, rollouts.map(Rollouts.line).join(""))
  yield* fs.writeFileString(`${directory}/samples.jsonl`, samples.map(Samples.line).join(""))

  const written = yield* Stream.runCollect(Samples.read(`${directory}/samples.jsonl`))
  return written.map(({ rolloutId, parentRolloutId, depth, inputIds, actionMask, credit }) => {
    const said = actionMask.filter((mask) => mask === 1).length
    const from = parentRolloutId === null ? "" : ` for ${parentRolloutId}`
    return `${rolloutId}${from}: depth ${depth}, ${said} of ${inputIds.length} tokens said, credit ${credit}`
  })
})

const lines = await Effect.runPromise(
  example.pipe(Effect.scoped, Effect.provide(models), Effect.provide(NodeFileSystem.layer)),
)
console.log([...lines, `${directory}/samples.jsonl`].join("\n"))
