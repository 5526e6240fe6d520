/**
 * A client of a Tinker server, as a process that may be killed at any time: `node tinkerClient.ts PORT CLIENT STEPS FILE`. It
 * writes each outcome into its file before it sends the next request, and continues from there when it is started again. Its
 * requests depend only on its number and their place.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { stream } from "../../src/base/rng/Rng.ts"
import { type AnswerBody, done, exampleOf, persistently, sampled } from "../trainer/tinker/speaking.ts"

/** The memory of a client, which it keeps when it is killed. */
export interface ClientState {
  session: string
  model: string
  readonly outcomes: Array<AnswerBody>
}

/** The requests of a client from one update to the next: two gradients, the update, and saved weights, which are sampled from. */
export const requestsOfStep = 4

const readState = (file: string): ClientState =>
  existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { session: "", model: "", outcomes: [] }

const saveState = (file: string, state: ClientState): void => {
  writeFileSync(`${file}.new`, JSON.stringify(state))
  renameSync(`${file}.new`, file)
}

const perform = async (port: number, client: number, model_id: string, seq_id: number): Promise<AnswerBody> => {
  const random = stream(5, "client", client, "request", seq_id)
  const tokens = (length: number) => Array.from({ length }, () => random.integer(26))
  switch (seq_id % requestsOfStep) {
    case 3:
      return done(port, "/optim_step", { model_id, seq_id, adam_params: { learning_rate: 0.01 } })
    case 0: {
      await done(port, "/save_weights_for_sampler", { model_id, seq_id, path: `request-${seq_id}` })
      const { sequences } = await sampled(port, {
        model_path: `tinker://${model_id}/sampler_weights/request-${seq_id}`,
        num_samples: 2,
        prompt: { chunks: [{ type: "encoded_text", tokens: tokens(4) }] },
        sampling_params: { max_tokens: 6, temperature: 1, seed: seq_id },
      })
      return sequences
    }
    default: {
      const data = Array.from({ length: 4 }, () => exampleOf(tokens(9)))
      const forward_backward_input = { data, loss_fn: "cross_entropy", loss_fn_config: null }
      return done(port, "/forward_backward", { model_id, seq_id, forward_backward_input })
    }
  }
}

const train = async (port: number, client: number, steps: number, file: string): Promise<void> => {
  const state = readState(file)
  if (state.session === "") {
    const { session_id } = await persistently(port, "/create_session", { tags: [], sdk_version: "0" })
    state.session = session_id
    saveState(file, state)
  }
  if (state.model === "") {
    const settings = { session_id: state.session, model_seq_id: 0, base_model: "base" }
    const { model_id } = await done(port, "/create_model", { ...settings, lora_config: { rank: 4, seed: client } })
    state.model = model_id
    saveState(file, state)
  }
  while (state.outcomes.length < steps * requestsOfStep) {
    state.outcomes.push(await perform(port, client, state.model, state.outcomes.length + 1))
    saveState(file, state)
  }
}

if (import.meta.main) {
  const [port, client, steps, file] = process.argv.slice(2)
  await train(Number(port), Number(client), Number(steps), file)
}
