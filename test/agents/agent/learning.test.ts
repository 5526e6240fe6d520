import { NodeServices } from "@effect/platform-node"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Agent } from "../../../src/agents/agent/Agent.ts"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import type { Plain } from "../../../src/base/config/Config.ts"
import type { TextEnv } from "../../../src/agents/task/TextEnv.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import type { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { reader } from "../../../src/agents/lm/providers/reader.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { tasks } from "../task/support.ts"

/** An agent as a file asks for it. */
const agentOf = (config: Plain, script: Scripted.Script = reader) =>
  Effect.gen(function* () {
    const said = { lm_config: { model: "scripted:reader" }, ...config }
    const { make } = yield* Agents.decode(said, { source: "test.yaml" })
    return yield* Effect.provide(make, Scripted.layer(script))
  })

/** The share of right answers. */
const trained = (agent: Agent, envs: ReadonlyArray<TextEnv>) =>
  Effect.gen(function* () {
    let score = 0
    for (const [seed, env] of envs.entries()) {
      score += (yield* SingleAgent.play(agent, { id: env.id, env, envSeed: seed, samplingSeed: seed })).totalReward
    }
    return score / envs.length
  })

/** All at the same time, by clones that share the memory and can't write it. */
const validated = (agent: Agent, envs: ReadonlyArray<TextEnv>) =>
  Effect.gen(function* () {
    const frozen = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
    const { play } = SingleAgent.make(frozen)
    const all = yield* Effect.forEach(
      envs.entries(),
      ([seed, env]) => play({ id: env.id, env, envSeed: seed, samplingSeed: seed }),
      { concurrency: 50 },
    )
    return all.flat().reduce((sum, { totalReward }) => sum + totalReward, 0) / envs.length
  })

const memoryOf = (agent: Agent) => agent.memory?.snapshot ?? Effect.succeed("")

/** Trains on half of a code's tasks, then validates on others of the same code, in every wording. */
const learnt = (config: Plain, codeSeed: number) =>
  Effect.gen(function* () {
    const agent = yield* agentOf(config)
    const code = { type: "codebook", rule: "none", code_seed: codeSeed }
    const train = yield* trained(agent, yield* tasks({ ...code, num_tasks: 100, seed: 1 }, 100))
    const before = yield* memoryOf(agent)
    const validation = yield* validated(agent, yield* tasks({ ...code, num_tasks: 60, seed: 2 }, 60))
    assert.strictEqual(yield* memoryOf(agent), before)
    return { train, validation }
  })

const codes = [1, 2, 3]

layer(NodeServices.layer)("what is remembered makes a difference", (it) => {
  it.effect("history beats none, and reflections beat history, in training and validation of every code", () =>
    Effect.gen(function* () {
      for (const code of codes) {
        const none = yield* learnt({ type: "memoryless_agent" }, code)
        const history = yield* learnt({ type: "history_agent" }, code)
        const reflexion = yield* learnt(
          { type: "reflexion_agent", reflect_on_failure_only: true, max_reflections_in_prompt: 12 },
          code,
        )
        for (const phase of ["train", "validation"] as const) {
          assert.strictEqual(none[phase], 0)
          assert.isAbove(history[phase], 0.25, `${phase} of ${code}`)
          assert.isAbove(reflexion[phase], history[phase] + 0.2, `${phase} of ${code}`)
        }
      }
    }),
  )

  it.effect(
    "depends on how much is remembered, and how much of it is shown",
    () =>
      Effect.gen(function* () {
        const [code] = codes
        const history = (config: Plain) => learnt({ type: "history_agent", ...config }, code)
        const all = yield* history({ memory_config: { max_length: null } })
        const bounded = yield* history({ memory_config: { max_length: 30 } })
        const last = yield* history({ memory_config: { max_length: null }, history_k: 30 })
        const nothing = yield* history({ history_k: 0 })
        assert.isAbove(all.validation, bounded.validation)
        assert.deepStrictEqual(last, bounded)
        assert.deepStrictEqual(nothing, { train: 0, validation: 0 })
        // Six entries are enough if they are the right ones.
        for (const _type of ["bm25", "embeddings"]) {
          const similar = yield* history({ memory_config: { _type, max_length: null }, history_k: 6 })
          const recent = yield* history({ memory_config: { max_length: null }, history_k: 6 })
          assert.isAbove(similar.validation, recent.validation + 0.3, _type)
        }
      }),
    { tags: "slow" },
  )

  it.effect("and a validation writes nothing, and makes no further calls", () =>
    Effect.gen(function* () {
      const requests: Array<LmRequest> = []
      const script = (request: LmRequest): string => {
        requests.push(request)
        return reader(request)
      }
      const agent = yield* agentOf({ type: "reflexion_agent" }, script)
      const code = { type: "codebook", num_tasks: 20 }
      yield* trained(agent, yield* tasks({ ...code, seed: 1 }, 20))
      assert.strictEqual(requests.length, 40)
      const before = yield* memoryOf(agent)
      const others = yield* tasks({ ...code, seed: 2 }, 20)
      yield* validated(agent, others)
      const asked = requests.slice(40)
      assert.strictEqual(asked.length, 20)
      assert.strictEqual(yield* memoryOf(agent), before)
      assert.isTrue(agent.training)
      // Each saw the memory, and its own task; none saw another's.
      for (const [at, { messages }] of asked.entries()) {
        assert.strictEqual(messages.length, 1)
        assert.strictEqual(messages[0].content.split("REFLECTION: ").length - 1, 10, String(at))
      }
      const last = asked.map(({ messages }) => messages[0].content.split("\n\n").at(-1))
      const own = yield* Effect.forEach(others, (env) => env.begin(stream(1)))
      assert.sameMembers(
        last,
        own.map(({ observation }) => observation),
      )
    }),
  )
})

describe("the reading model", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("knows nothing by itself, so every right answer was remembered", () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ type: "reflexion_agent" })
        const envs = yield* tasks({ type: "codebook", num_tasks: 30 }, 30)
        assert.strictEqual(yield* validated(agent, envs), 0)
      }),
    )
  })
})
