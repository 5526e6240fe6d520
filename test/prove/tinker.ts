/** Kills a Tinker server and its clients at random, and compares what they have with an undisturbed training. */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Stream, stream } from "../../src/base/rng/Rng.ts"
import { freePort } from "../servers/listen.ts"
import { serve, writeModel } from "../trainer/tinker/tinkerProcess.ts"
import { must, type Proof } from "./Proof.ts"
import { type ClientState, requestsOfStep } from "./tinkerClient.ts"

const program = fileURLToPath(new URL("tinkerClient.ts", import.meta.url))

interface Campaign {
  readonly clients: number
  /** The number of updates of each client. */
  readonly steps: number
  /** Kills that are made unless all clients have ended before. */
  readonly kills: number
  readonly random: Stream
}

interface ClientProcess {
  readonly kill: () => void
  readonly isRunning: () => boolean
  /** Ends when the client has finished its training; fails if it failed. */
  readonly finished: Promise<void>
}

/** Starts a client, and starts it again whenever it is killed. */
const startClient = (args: ReadonlyArray<string>): ClientProcess => {
  let running = begin(args)
  let isRunning = true
  const finished = (async () => {
    for (;;) {
      const { code, text } = await running.ended
      if (code === 0) break
      must(code === null, `a client failed: ${text}`)
      running = begin(args)
    }
    isRunning = false
  })()
  finished.catch(() => undefined)
  return { kill: () => void running.child.kill("SIGKILL"), isRunning: () => isRunning, finished }
}

const begin = (args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "ignore", "pipe"] })
  let text = ""
  child.stderr.on("data", (chunk) => (text += String(chunk)))
  const ended = new Promise<{ readonly code: number | null; readonly text: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, text }))
  })
  return { child, ended }
}

/** The results of a training: the outcomes that each client has, and its weights, moments and number of updates. */
type Left = ReadonlyArray<{
  readonly outcomes: ReadonlyArray<unknown>
  readonly weights: string
  readonly steps: number
}>

interface Trained {
  readonly left: Left
  readonly killed: { readonly server: number; readonly clients: number }
}

/** Lets clients train, with kills of the server and of clients in turn by chance. */
const train = async (folder: string, { clients, steps, kills, random }: Campaign): Promise<Trained> => {
  mkdirSync(folder)
  await writeModel(folder, { hiddenSize: 16, layers: 1 })
  const port = await freePort()
  let server = await serve(folder, port)
  const file = (client: number): string => join(folder, `client-${client}.json`)
  const all = Array.from({ length: clients }, (_, client) =>
    startClient([port, client, steps, file(client)].map(String)),
  )
  const killed = { server: 0, clients: 0 }
  while (killed.server + killed.clients < kills) {
    const moment = 30 + random.integer(600)
    await Promise.race([Promise.all(all.map(({ finished }) => finished)), after(moment)])
    const running = all.filter(({ isRunning }) => isRunning())
    if (running.length === 0) break
    if (random.integer(2) === 0) {
      killed.server++
      await server.kill()
      server = await serve(folder, port)
    } else {
      killed.clients++
      running[random.integer(running.length)].kill()
    }
  }
  await Promise.all(all.map(({ finished }) => finished))
  await server.kill()
  return { left: all.map((_, client) => leftOf(folder, file(client))), killed }
}

const after = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

const leftOf = (folder: string, file: string): Left[number] => {
  const { model, outcomes }: ClientState = JSON.parse(readFileSync(file, "utf8"))
  const state = join(folder, "models/models", model, "state")
  const { steps } = JSON.parse(readFileSync(join(state, "progress.json"), "utf8"))
  return { outcomes, weights: readFileSync(join(state, "state.safetensors")).toString("base64"), steps }
}

interface Sizes {
  readonly clients: number
  readonly steps: number
  readonly kills: number
}

/** Kills until there were enough kills, in as many trainings as that takes. Returns what was killed. */
export const killedAtRandom = async (folder: string, { clients, steps, kills }: Sizes): Promise<string> => {
  const calm = await train(join(folder, "calm"), { clients, steps, kills: 0, random: stream(0, "kills") })
  for (const { outcomes, steps: made } of calm.left) {
    must(outcomes.length === steps * requestsOfStep, `${outcomes.length} outcomes of ${steps * requestsOfStep}`)
    must(made === steps, `${made} updates of ${steps}`)
  }
  let [ofServer, ofClients, trainings] = [0, 0, 0]
  while (ofServer + ofClients < kills) {
    const seed = ++trainings
    const random = stream(seed, "kills")
    const campaign = { clients, steps, kills: kills - ofServer - ofClients, random }
    const { left, killed } = await train(join(folder, String(seed)), campaign)
    const place = `seed ${seed}, after ${killed.server} kills of the server and ${killed.clients} of clients`
    must(killed.server + killed.clients > 0, `${place}: the clients have ended before the first kill`)
    for (const [client, one] of left.entries()) {
      must(one.steps === steps, `${place}: client ${client} made ${one.steps} updates of ${steps}`)
      must(one.weights === calm.left[client].weights, `${place}: client ${client} has other weights`)
      const same = isDeepStrictEqual(one.outcomes, calm.left[client].outcomes)
      must(same, `${place}: client ${client} has other outcomes`)
    }
    ofServer += killed.server
    ofClients += killed.clients
  }
  const requests = clients * steps * requestsOfStep
  return `killed: server ${ofServer}, clients ${ofClients}, in ${trainings} trainings of ${requests} requests each`
}

export const tinker: ReadonlyArray<Proof> = [
  {
    name: "tinker-crash",
    claim:
      "a Tinker server and its eight clients, killed with kill -9 at 30 random moments and started again: all outcomes, samples, weights and moments of an undisturbed training, each update once",
    run: (folder) => killedAtRandom(folder, { clients: 8, steps: 12, kills: 30 }),
  },
]
