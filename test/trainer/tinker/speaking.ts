/** Speaks Tinker's protocol by plain HTTP to a server that may be killed at any time. */

export type AnswerBody = ReturnType<typeof JSON.parse>

const post = async (port: number, path: string, body: unknown) => {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

/** Sends a request until a server answers it. Returns undefined if the server does not know it. */
const untilAnswered = async (port: number, path: string, body: unknown): Promise<AnswerBody> => {
  for (;;) {
    const answer = await post(port, path, body).catch(() => undefined)
    if (answer?.status === 200) return answer.body
    if (answer?.status === 410) return undefined
    if (answer !== undefined && answer.status !== 408) throw new Error(JSON.stringify(answer.body))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Sends a request until a server answers it. */
export const persistently = async (port: number, path: string, body: unknown): Promise<AnswerBody> => {
  const answer = await untilAnswered(port, path, body)
  if (answer === undefined) throw new Error(`${path}: the server has forgotten the request`)
  return answer
}

/** Sends a request, and waits for its outcome. */
export const done = async (port: number, path: string, body: unknown): Promise<AnswerBody> => {
  const { request_id } = await persistently(port, path, body)
  const outcome = await persistently(port, "/retrieve_future", { request_id })
  if ("error" in outcome) throw new Error(`${path}: ${outcome.error}`)
  return outcome
}

/** Asks for samples. A server that was killed has forgotten them, so then asks again. */
export const sampled = async (port: number, body: unknown): Promise<AnswerBody> => {
  for (;;) {
    const { request_id } = await persistently(port, "/asample", body)
    const outcome = await untilAnswered(port, "/retrieve_future", { request_id })
    if (outcome !== undefined) return outcome
  }
}

/** Makes an example whose targets are the next tokens. */
export const exampleOf = (tokens: ReadonlyArray<number>) => ({
  model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, -1) }] },
  loss_fn_inputs: { target_tokens: { data: tokens.slice(1), dtype: "int64", shape: [tokens.length - 1] } },
})
