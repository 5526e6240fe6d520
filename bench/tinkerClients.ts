/**
 * Measures Tinker servers as processes of the `effect` command, with clients that learn by rewards: each step saves the weights,
 * samples answers from them, computes their gradient, and updates.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Rng } from "effect-rl"
import { processLoad } from "./processLoad.ts"

/** The speed and the memory of all servers together. */
export interface ServersLoad {
  /** The tokens of trained samples in a second, prompts included, and in a second of one core. */
  readonly trainedASecond: number
  readonly trainedACoreSecond: number
  readonly residentBytes: number
  readonly proportionalBytes: number
  readonly seconds: number
}

interface ServersOptions {
  /** The folder of the model, and the folder for what the servers keep. */
  readonly model: string
  readonly folder: string
  readonly backend: string
  /** The number of servers, and of clients of each. */
  readonly servers: number
  readonly clients: number
  /** The steps that each client makes before the measurement begins, and those that all make during it, on average. */
  readonly warmUp: number
  readonly steps: number
  /** The most tokens of an answer. */
  readonly answer: number
}

const command = fileURLToPath(new URL("../bin/effect.js", import.meta.url))
const rank = 8
const [prompts, samples, promptTokens] = [2, 4, 20]

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts a server, and waits until it answers. */
const startServer = async ({ model, folder, backend }: ServersOptions, number: number) => {
  const port = await freePort()
  const flags = ["--tinker", "--tinker-dir", join(folder, String(number)), "--max-lora-rank", String(rank), "--json"]
  const args = [command, "serve", model, "--name", "base", "--port", String(port), "--backend", backend, ...flags]
  const child = spawn(process.execPath, [...args, "--slots", "64"], { stdio: ["ignore", "pipe", "pipe"] })
  let errors = ""
  child.stderr.on("data", (chunk) => (errors += chunk))
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error(`server ${number} has ended: ${errors}`))),
  ])
  return { child, port }
}

/** Speaks the protocol to the server of a port. */
const speakerTo = (port: number) => {
  const post = async (path: string, body: unknown): Promise<ReturnType<typeof JSON.parse>> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    if (response.status === 408) return post(path, body)
    const answer = JSON.parse(await response.text())
    if (response.status !== 200 || "error" in answer) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    return answer
  }
  const done = async (path: string, body: unknown) =>
    post("/retrieve_future", { request_id: (await post(path, body)).request_id })
  return { post, done }
}

/** Trains until it is stopped. Calls `onStep` with the number of trained tokens. */
const client = async (
  port: number,
  number: number,
  answer: number,
  { isStopped, onStep }: { readonly isStopped: () => boolean; readonly onStep: (tokens: number) => void },
): Promise<void> => {
  const { post, done } = speakerTo(port)
  const { session_id } = await post("/create_session", { tags: [], sdk_version: "0" })
  const lora_config = { rank, seed: number }
  const { model_id } = await done("/create_model", { session_id, model_seq_id: 0, base_model: "base", lora_config })
  let seq_id = 0
  for (let step = 0; !isStopped(); step++) {
    const path = `step-${step % 2}`
    const { path: model_path } = await done("/save_weights_for_sampler", { model_id, seq_id: ++seq_id, path })
    const asked = Array.from({ length: prompts }, async (_, at) => {
      const random = Rng.stream(1, "prompt", number, step, at)
      const prompt = Array.from({ length: promptTokens }, () => random.integer(26))
      const { sequences } = await done("/asample", {
        model_path,
        num_samples: samples,
        prompt: { chunks: [{ type: "encoded_text", tokens: prompt }] },
        sampling_params: { max_tokens: answer, temperature: 1, seed: random.integer(1e6) },
      })
      return sequences.map((one: Sequence) => datumOf(prompt, one, random.normal()))
    })
    const data = (await Promise.all(asked)).flat()
    const forward_backward_input = { data, loss_fn: "importance_sampling", loss_fn_config: null }
    const gradient = done("/forward_backward", { model_id, seq_id: ++seq_id, forward_backward_input })
    const update = done("/optim_step", { model_id, seq_id: ++seq_id, adam_params: { learning_rate: 1e-5 } })
    const [{ metrics }] = await Promise.all([gradient, update])
    onStep(metrics["tokens:sum"])
  }
}

interface Sequence {
  readonly tokens: ReadonlyArray<number>
  readonly logprobs: ReadonlyArray<number>
}

const datumOf = (prompt: ReadonlyArray<number>, { tokens, logprobs }: Sequence, advantage: number) => {
  const before = prompt.slice(1).map(() => 0)
  const column = (data: ReadonlyArray<number>, dtype = "float32") => ({ data, dtype, shape: [data.length] })
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: [...prompt, ...tokens.slice(0, -1)] }] },
    loss_fn_inputs: {
      target_tokens: column([...prompt.slice(1), ...tokens], "int64"),
      logprobs: column([...before, ...logprobs]),
      advantages: column([...before, ...tokens.map(() => advantage)]),
    },
  }
}

/** Lets clients train, each at its server, and measures all servers together. */
export const measureServers = async (options: ServersOptions): Promise<ServersLoad> => {
  const { servers, clients, warmUp, steps, answer } = options
  const started = await Promise.all(Array.from({ length: servers }, (_, number) => startServer(options, number)))
  const load = processLoad(started.flatMap(({ child: { pid } }) => (pid === undefined ? [] : [pid])))
  const made = new Array<number>(servers * clients).fill(0)
  let tokens = 0
  let isStopped = false
  const working = Promise.all(
    made.map((_, number) =>
      client(started[number % servers].port, number, answer, {
        isStopped: () => isStopped,
        onStep: (trained) => {
          made[number]++
          tokens += trained
        },
      }),
    ),
  )
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await Promise.race([setTimeout(50), working])
      load.watch()
    }
  }
  const total = (): number => made.reduce((sum, one) => sum + one, 0)
  try {
    await until(() => made.every((one) => one >= warmUp))
    const before = { tokens, at: performance.now(), cpu: load.cpuSeconds(), steps: total() }
    await until(() => total() - before.steps >= steps * made.length)
    const seconds = (performance.now() - before.at) / 1000
    return {
      trainedASecond: (tokens - before.tokens) / seconds,
      trainedACoreSecond: (tokens - before.tokens) / (load.cpuSeconds() - before.cpu),
      residentBytes: load.residentBytes(),
      proportionalBytes: load.proportionalBytes(),
      seconds,
    }
  } finally {
    isStopped = true
    await working.catch(() => undefined)
    for (const { child } of started) child.kill("SIGKILL")
  }
}
