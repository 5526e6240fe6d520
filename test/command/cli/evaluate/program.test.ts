import { assert, describe, it } from "vitest"
import { effect, withFolder, write } from "../effect.ts"

/** An evaluation of the user's own agent, whose answers are those of a function. */
const program = (answer: string): string => `import { Effect, Schema } from "effect"
import { AgentKind, Agents, Evaluations, LmError, MemorylessAgent, Scripted } from "effect-rl"
const model = Scripted.layer(({ model, messages }) => Effect.tryPromise({
  try: ${answer},
  catch: (error) => new LmError({ model, reason: "unavailable", attempts: 1, message: String(error) }),
}))
const mine = AgentKind.make({
  type: "mine",
  schema: Schema.Struct(AgentKind.fields("mine")),
  make: (_, { settings }) => Effect.provide(MemorylessAgent.make(settings), model),
})
export default Evaluations.fromConfig({
  dataset: { items: [
    { id: "france", question: "What is the capital of France?", answer: "Paris" },
    { id: "japan", question: "What is the capital of Japan?", answer: "Tokyo" },
  ], id_field: "id" },
  agents: { mine: { type: "mine", lm_config: { model: "scripted:echo" } } },
  scorers: ["exact"],
}).pipe(Effect.provideService(Agents.Kinds, [...Agents.builtIn, mine]))
`

describe("effect run with a program that evaluates an agent", () => {
  it("prints the tables that effect eval prints", () =>
    withFolder(async (folder) => {
      write(folder, "mine.ts", program('async () => (messages.at(-1)?.content.includes("Japan") ? "Tokyo" : "Rome")'))
      const ran = await effect(["run", "mine.ts"], folder)
      assert.strictEqual(ran.code, 0, ran.stderr)
      assert.match(ran.stdout, /^agent +score +mean +95 % +tasks\nmine +exact +0\.500 /)
      const shown = await effect(["eval", "latest"], folder)
      const tables = shown.stdout.slice(shown.stdout.indexOf("agent"))
      assert.isTrue(ran.stdout.startsWith(tables), `${ran.stdout}\n${tables}`)
    }))

  it("fails if an episode failed", () =>
    withFolder(async (folder) => {
      write(folder, "mine.ts", program('async () => { throw new Error("no connection") }'))
      const ran = await effect(["run", "mine.ts", "--quiet"], folder)
      assert.strictEqual(ran.code, 1)
      assert.match(ran.stderr, /^effect: 2 of 2 episodes failed: 2 × LmError: .*no connection/)
    }))
})
