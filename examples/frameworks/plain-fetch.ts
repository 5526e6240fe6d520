// An agent without a framework. `npx effect eval plain-fetch.ts` evaluates it; OPENAI_API_KEY has the key.
import { Evaluations, FunctionAgent } from "effect-rl"
import { questions } from "./questions.ts"

const mine = FunctionAgent.make("plain-fetch", async ({ text }, { lm, signal }) => {
  const { baseURL, apiKey } = await lm.connect()
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({
      model: lm.name,
      messages: [
        { role: "system", content: "Answer with the number alone." },
        { role: "user", content: text },
      ],
    }),
    signal,
  })
  if (!response.ok) throw new Error(`the model answered ${response.status}`)
  const { choices } = JSON.parse(await response.text())
  return choices[0].message.content
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
