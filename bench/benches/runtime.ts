import { Effect, Layer } from "effect"
import { MemorylessAgent, Runtime, Scripted, type TaskSet, TextEnv } from "effect-rl"
import { platform, recorder, runStore } from "effect-rl/node"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"

/** A text environment whose episodes have one question and one answer. */
const question = (index: number): TextEnv.TextEnv =>
  TextEnv.make({
    id: `sum-${index}`,
    type: "qa",
    begin: () => ({ state: index, observation: `What is ${index} + 1? Answer with a number.` }),
    step: (number, action) => ({
      state: number,
      observation: null,
      feedback: { score: Number(action) === number + 1 ? 1 : 0, target: `${number + 1}`, message: "Correct." },
      terminated: true,
    }),
  })

const tasks = (size: number): TaskSet.TaskSet => ({
  name: "sums",
  size,
  digest: "sums",
  at: (index) => Effect.succeed(question(index)),
})

const model = (wait: Effect.Effect<void> | null) =>
  Scripted.layer(({ messages }) => {
    const answer = `${Number(/\d+/.exec(messages.at(-1)?.content ?? "")?.[0]) + 1}`
    return wait === null ? answer : Effect.as(wait, answer)
  })

/** Executes a run on disk, like `effect run`; returns its result and the CPU seconds. */
const once = async (
  input: Pick<Runtime.RuntimeInput, "train" | "validation" | "runtime">,
  wait: Effect.Effect<void> | null = null,
) => {
  const { folder, remove } = temporaryFolder()
  const before = process.cpuUsage()
  try {
    const agent = MemorylessAgent.make({ model: "scripted", systemPrompt: "You are good at sums." })
    const result = await Effect.runPromise(
      Runtime.run({ agent, ...input }).pipe(
        Effect.provide(Layer.mergeAll(model(wait), platform, runStore({ resultsDir: folder }), recorder())),
      ),
    )
    const { user, system } = process.cpuUsage(before)
    return { result, coreSeconds: (user + system) / 1e6 }
  } finally {
    remove()
  }
}

export default [
  defineBench({
    name: "runtime",
    unit: "episodes/s",
    higherIsBetter: true,
    about: "A whole run of single-turn episodes, a verbose line of scores each, by a model that answers at once",
    run: async () => {
      const size = 20_000
      const input = { train: tasks(size), runtime: { verbose: false } }
      await once({ ...input, train: tasks(2000) })
      const { result, coreSeconds } = await once(input)
      if (result.meanScore !== 1) throw new Error(`mean score ${result.meanScore}`)
      return { value: size / result.wallSeconds, details: { "a second of a core": size / coreSeconds } }
    },
  }),
  defineBench({
    name: "runtime-validation",
    unit: "MB",
    higherIsBetter: false,
    about: "Memory of the process while 10,000 validation episodes at a time wait for a model that takes 200 ms",
    run: async () => {
      const size = 20_000
      const runtime = { verbose: false, runValidationAtStart: true, validationNumWorkers: 10_000 }
      const { result } = await once({ validation: tasks(size), runtime }, Effect.sleep("200 millis"))
      if (result.validation?.episodes !== size) throw new Error(`${result.validation?.episodes} episodes`)
      return { value: process.resourceUsage().maxRSS / 1024, details: { seconds: result.wallSeconds } }
    },
  }),
]
