// An agent in Effect: a program of the service LanguageModel with a toolkit. `npx effect eval effect-ai.ts` evaluates it;
// OPENAI_API_KEY has the key.
import { Effect, Layer, Redacted, Schema } from "effect"
import * as Chat from "effect/ai/Chat"
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { Evaluations, FunctionAgent, OpenAi } from "effect-rl"
import { questions } from "./questions.ts"

const toolkit = Toolkit.make(
  Tool.make("add", {
    description: "Adds two numbers.",
    parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    success: Schema.Finite,
  }),
)
const tools = toolkit.toLayer({ add: ({ a, b }) => Effect.succeed(a + b) })

const mine = FunctionAgent.make("effect-ai", ({ text }, { lm }) =>
  Effect.gen(function* () {
    const { baseURL: baseUrl, apiKey } = yield* Effect.promise(() => lm.connect())
    const model = OpenAi.layer({ model: lm.name, baseUrl, apiKey: Redacted.make(apiKey) }).pipe(
      Layer.provide(FetchHttpClient.layer),
    )
    const chat = yield* Chat.fromPrompt([{ role: "system", content: "Answer with the number alone." }])
    const ask = (prompt: Prompt.RawInput) => Effect.provide(chat.generateText({ prompt, toolkit }), [model, tools])
    let answer = yield* ask(text)
    // A model that has called a tool is asked again: the chat has the result.
    while (answer.toolCalls.length > 0) answer = yield* ask([])
    return answer.text
  }),
)

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
