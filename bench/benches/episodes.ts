import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, FileSystem, Layer } from "effect"
import { type Agent } from "../../src/agents/agent/Agent.ts"
import * as MemorylessAgent from "../../src/agents/agent/MemorylessAgent.ts"
import * as TextEnv from "../../src/agents/task/TextEnv.ts"
import * as RolloutEngine from "../../src/agents/episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../../src/agents/episode/rollouts/RolloutRequest.ts"
import * as SingleAgent from "../../src/agents/episode/protocols/SingleAgent.ts"
import * as Scripted from "../../src/agents/lm/providers/scripted.ts"
import { defineBench } from "../Bench.ts"

/** A text environment whose episodes have one question and one answer. */
const question = TextEnv.make<number>({
  id: "sum",
  type: "qa",
  begin: (random) => {
    const number = random.integer(1000)
    return { state: number, observation: `What is ${number} + 1? Answer with a number.` }
  },
  step: (number, action) => ({
    state: number,
    observation: null,
    feedback: { score: Number(action) === number + 1 ? 1 : 0, target: `${number + 1}`, message: "Correct." },
    terminated: true,
  }),
})

const answering = (wait: Effect.Effect<void> | null) =>
  Scripted.layer(({ messages }) => {
    const answer = `${Number(/\d+/.exec(messages.at(-1)?.content ?? "")?.[0]) + 1}`
    return wait === null ? answer : Effect.as(wait, answer)
  })

const agentWith = (wait: Effect.Effect<void> | null): Promise<Agent> =>
  MemorylessAgent.make({ model: "scripted", systemPrompt: "You are good at sums." }).pipe(
    Effect.provide(answering(wait)),
    Effect.runPromise,
  )

const batchOf = (agent: Agent, size: number, concurrency: number): RolloutEngine.RolloutBatch => {
  const tasks = { size, digest: "sums", at: () => Effect.succeed(question) }
  return {
    tasks,
    requests: RolloutRequest.forTasks(tasks, { seed: 1 }),
    protocol: SingleAgent.make(agent),
    concurrency,
  }
}

const counted = (batch: RolloutEngine.RolloutBatch, episodes: number): Promise<void> => {
  let good = 0
  const tell = ({ rollouts: [rollout] }: { readonly rollouts: ReadonlyArray<{ readonly totalReward: number }> }) =>
    Effect.sync(() => void (good += rollout.totalReward))
  return RolloutEngine.each(batch, tell).pipe(
    Effect.map(() => {
      if (good !== episodes) throw new Error(`${good} good episodes of ${episodes}`)
    }),
    Effect.runPromise,
  )
}

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/** Measures calls per second of CPU time on one core. CPU time does not depend on other processes. */
const aCore = async (work: () => Promise<unknown>): Promise<number> => {
  const times = 20
  const before = process.cpuUsage()
  for (let time = 0; time < times; time++) await work()
  const { user, system } = process.cpuUsage(before)
  return (times * episodes) / ((user + system) / 1e6)
}
const episodes = 2000

export default [
  defineBench({
    name: "episodes",
    unit: "episodes/s",
    higherIsBetter: true,
    about: "Single-turn episodes of the engine, with a model that answers at once",
    run: async ({ timeAsync }) => {
      const batch = batchOf(await agentWith(null), episodes, 8)
      const play = () => counted(batch, episodes)
      const { seconds, best } = await timeAsync(play, { minimumSeconds: 3 })
      return { value: episodes / seconds, details: { best: episodes / best, "a second of a core": await aCore(play) } }
    },
  }),
  defineBench({
    name: "episodes-written",
    unit: "episodes/s",
    higherIsBetter: true,
    about: "The same, with all rollouts written to a file",
    run: async ({ timeAsync }) => {
      const batch = batchOf(await agentWith(null), episodes, 8)
      const once = Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = `${yield* fs.makeTempDirectoryScoped()}/outcomes.jsonl`
        yield* RolloutEngine.write(batch, path)
        return Number((yield* fs.stat(path)).size) / episodes
      }).pipe(Effect.scoped, Effect.provide(files))
      const bytes = await Effect.runPromise(once)
      const write = () => Effect.runPromise(once)
      const { seconds, best } = await timeAsync(write, { minimumSeconds: 3 })
      const details = { best: episodes / best, "a second of a core": await aCore(write), "bytes an episode": bytes }
      return { value: episodes / seconds, details }
    },
  }),
  defineBench({
    name: "episodes-waiting",
    unit: "MB",
    higherIsBetter: false,
    about: "Memory of the process while 10,000 episodes at a time wait for a model that takes 200 ms, 50,000 in all",
    run: async () => {
      const many = 50_000
      const batch = batchOf(await agentWith(Effect.sleep("200 millis")), many, 10_000)
      let most = 0
      const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
      const started = performance.now()
      await counted(batch, many)
      clearInterval(watch)
      const seconds = (performance.now() - started) / 1000
      const highest = process.resourceUsage().maxRSS / 1024
      return { value: Math.max(most / 2 ** 20, highest), details: { seconds, "episodes/s": many / seconds } }
    },
  }),
]
