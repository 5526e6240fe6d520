import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as ToolAgent from "../../../src/agents/agent/ToolAgent.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import * as ChatModel from "../../../src/decoder/engine/ChatModel.ts"
import { writtenAnswer } from "../../../src/decoder/engine/writtenAnswer.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import { lmError } from "../../../src/agents/lm/LmError.ts"
import { demonstrations, type Encode } from "../../../src/trainer/orchestrator/demonstrations.ts"
import * as Scratch from "../../../src/base/tokens/scratch.ts"
import { tasksOf } from "../../agents/task/opening.ts"

const episode = { id: "d", envSeed: 1, samplingSeed: 1 }
const settings = { model: "policy", traceTokens: true }

/** Returns the tokens of an example's model, and how it writes answers. */
const modelOf = Effect.fnUntraced(function* (example: string) {
  const { alphabet, template } = parse(readFileSync(`examples/trainer/${example}.yaml`, "utf8")).model.tokenizer
  const folder = yield* Scratch.characters(alphabet, { template })
  const chat = ChatModel.make(folder)
  const encode: Encode = (request, move) =>
    Effect.mapError(writtenAnswer(chat, request, move, { eos: folder.tokenizer.special.eos }), ({ message }) =>
      lmError("policy", "rejected", message, { attempts: 1 }),
    )
  return { tokens: folder.tokenizer, encode }
})

describe("demonstrations", () => {
  it.effect("of a tool are one sample, in which the call and the answer are to be learned", () =>
    Effect.gen(function* () {
      const { tokens, encode } = yield* modelOf("calculator")
      const protocol = demonstrations((lm) => Effect.provideService(ToolAgent.make(settings), Lm, lm), encode)
      for (const env of yield* tasksOf({ type: "arithmetic", num_tasks: 5, seed: 1 })) {
        const rollouts = yield* Effect.scoped(protocol.play({ ...episode, env }))
        assert.deepStrictEqual(
          rollouts.map(({ totalReward }) => totalReward),
          [1],
        )
        const expression = String(env.metadata["expression"])
        const [{ inputIds, actionMask }, ...others] = yield* Samples.of(rollouts)
        assert.deepStrictEqual(others, [])
        const text = tokens.decode(inputIds, { keepSpecial: true })
        const [, question, call, result, answer] =
          /^<\|im_start\|>(.*)<\|im_end\|><\|im_start\|>(.*<\|im_end\|>)<\|im_start\|>(.*)<\|im_end\|><\|im_start\|>(.*<\|im_end\|>)$/.exec(
            text,
          ) ?? assert.fail(text)
        assert.strictEqual(question, `What is ${expression}?`)
        assert.strictEqual(call, `{"name":"calculator","parameters":{"expression":"${expression}"}}<|im_end|>`)
        assert.strictEqual(answer, `${result}<|im_end|>`)
        const learned = inputIds.filter((_, at) => actionMask[at] === 1)
        assert.strictEqual(tokens.decode(learned, { keepSpecial: true }), call + answer)
      }
    }),
  )

  it.effect("of a game are the moves that its task demonstrates, on what the agent observes", () =>
    Effect.gen(function* () {
      const { tokens, encode } = yield* modelOf("tictactoe-self-play")
      const protocol = demonstrations((lm) => Effect.provideService(MemorylessAgent.make(settings), Lm, lm), encode)
      const game = { type: "tic_tac_toe", observation: "board", invalid_moves: "lose", opponent: "random", draw: 1 }
      const results = new Set<number>()
      for (const env of yield* tasksOf({ ...game, num_tasks: 10, seed: 1, demonstration: "optimal" })) {
        const rollouts = yield* Effect.scoped(protocol.play({ ...episode, env }))
        results.add(rollouts[0].totalReward)
        const samples = yield* Samples.of(rollouts)
        assert.isAbove(samples.length, 2)
        for (const { inputIds } of samples) assert.match(tokens.decode(inputIds), /^Q: [1-9a-iA-I]{9}[1-9]$/)
      }
      assert.deepStrictEqual([...results], [1])
    }),
  )

  it.effect("of a tool for an agent without tools are refused", () =>
    Effect.gen(function* () {
      const { encode } = yield* modelOf("calculator")
      const protocol = demonstrations((lm) => Effect.provideService(MemorylessAgent.make(settings), Lm, lm), encode)
      const [env] = yield* tasksOf({ type: "arithmetic", num_tasks: 1, seed: 1 })
      const { message } = yield* Effect.flip(Effect.scoped(protocol.play({ ...episode, env })))
      assert.include(message, "a call of calculator: expected an agent with tools")
    }),
  )

  it.effect("need a task that demonstrates its moves, or names the right answer", () =>
    Effect.gen(function* () {
      const { encode } = yield* modelOf("calculator")
      const protocol = demonstrations((lm) => Effect.provideService(MemorylessAgent.make(settings), Lm, lm), encode)
      const [env] = yield* tasksOf({ type: "key_door", num_tasks: 1, seed: 1 })
      const { message } = yield* Effect.flip(Effect.scoped(protocol.play({ ...episode, env })))
      assert.strictEqual(message, "key_door-1-1: expected feedback with the right answer, to imitate it; found none")
    }),
  )
})
