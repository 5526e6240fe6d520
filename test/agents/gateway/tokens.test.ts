/** The gateway before a real model: the small Llama of test/fixtures behind `effect serve`, on the wasm backend. */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { listenFor } from "../../decoder/serve/realServer.ts"
import { CallContext } from "../../../src/agents/lm/Lm.ts"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { SamplingSeed } from "../../../src/agents/lm/middleware/seeded.ts"
import * as Samples from "../../../src/agents/episode/samples/samples.ts"
import { rolloutOf } from "../../../src/agents/gateway/run/rollout.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { behind, opened } from "./opened.ts"

const root = fileURLToPath(new URL("../../fixtures/hugging-face/llama", import.meta.url))
const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

const settings = { model: "vllm:base", temperature: 0.9, maxOutputTokens: 6, traceTokens: true }

/** Provides what an episode provides to the calls of its agent. */
const inEpisode = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.provideService(SamplingSeed, 7),
    Effect.provideService(CallContext, { phase: { _tag: "train" }, purpose: "action", episode: 1, step: 2 }),
  )

describe("a model that reports its tokens", () => {
  it.live("gives an agent behind the gateway the same tokens as an agent of ours, streamed or not", () =>
    Effect.gen(function* () {
      const { url } = yield* listenFor(root)
      const lm = yield* behind(url, { model: "vllm:base" })
      const question = { role: "user" as const, content: "Hello" }
      const ask = (messages: LmRequest["messages"]) =>
        inEpisode(lm.complete({ ...LmRequest.defaults, ...settings, messages }))
      const first = yield* ask([question])
      const more = [
        question,
        { role: "assistant" as const, content: first.content },
        { role: "user" as const, content: "Go on" },
      ]
      const second = yield* ask(more)

      const session = yield* inEpisode(opened(lm, { base: settings }))
      const { client, calls } = session
      yield* Effect.promise(() => client.chat.completions.create({ model: "any", messages: [question] }))
      yield* Effect.promise(() => client.chat.completions.stream({ model: "any", messages: more }).finalContent())
      assert.isAbove(first.tokens?.completionIds.length ?? 0, 0)
      assert.deepStrictEqual(
        calls().map(({ completion }) => completion),
        [first, second],
      )

      const recorded = {
        id: "s",
        agent: "mine",
        groupId: null,
        tags: {},
        samplingSeed: 7,
        calls: calls(),
        reward: 1,
        isComplete: true,
      }
      const samples = yield* Samples.of([rolloutOf(recorded)], { onBreak: "split", requireLogprobs: true })
      const written = samples.flatMap(({ inputIds, actionMask }) => inputIds.filter((_, at) => actionMask[at] === 1))
      assert.deepStrictEqual(written, [...(first.tokens?.completionIds ?? []), ...(second.tokens?.completionIds ?? [])])
    }).pipe(Effect.provide(machine)),
  )
})
