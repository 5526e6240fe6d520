/**
 * Makes the files of a folder that an edge worker is deployed from: the policy as WebAssembly, compiled ahead because
 * workers compile nothing at run time, and the scripts around it. `command/cli/export` writes them; everything here only computes.
 *
 * @example
 * ```ts
 * const { policy } = yield* Train.validate(training, { checkpoint: "latest", exportsPolicy: true })
 * const files = policy === undefined ? {} : workerFiles(policy, { name: "cartpole", scripts })
 * ```
 */
import { Record } from "effect"
import { jsonSchema } from "../../../base/config/jsonSchema.ts"
import { markdownText, prettyJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { type ActionSpace, maskSizeOf, optionsOf, sizeOf, type Space, unmasked } from "../../env/Space.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import { simplify } from "../../../tensor/graph/simplify.ts"
import { topologicalOrder } from "../../../tensor/graph/Tensor.ts"
import { rootsOf, validate } from "../../../tensor/graph/validate.ts"
import { compileAll, type ArrayAddress as ModulePlace } from "../../../tensor/graph/wasm/compile.ts"
import type { TrainedPolicy } from "../../learner/TrainedPolicy.ts"
import type { Card, Part, Place } from "./card.d.ts"
import { declarations } from "./declarations.ts"
import { observationSchemaOf } from "./observationSchema.ts"

/** A policy as a WebAssembly module, and the text of its `card.js`. */
interface CompiledPolicy {
  /** The module. It has the weights in its data segments, and acts on one observation at a time. */
  readonly wasm: Uint8Array
  readonly card: Card
  /** The text of `card.js`. */
  readonly cardModule: string
}

/** Compiles the policy with its weights to a module. */
const compilePolicy = (policy: TrainedPolicy, name: string): CompiledPolicy => {
  validate(policy.spec)
  const initialStates = readByPolicy(policy.spec, policy.states)
  const { bytes, programs } = compileAll({ policy: simplify(policy.spec) }, { initialStates })
  const { feeds, results } = programs.policy
  const card = cardOf(policy, name)
  const places = {
    observations: placeOf(feeds.observations),
    actions: placeOf(results.actions),
    memory: placeOf(feeds.memory),
    nextMemory: placeOf(results.nextMemory),
  }
  const { normalisation } = policy
  const constants =
    normalisation === undefined
      ? null
      : {
          mean: [...normalisation.mean],
          factor: [...normalisation.factor],
          clip: normalisation.clip,
          kept: [...normalisation.kept],
        }
  const cardModule = [
    "/** Describes the policy in `policy.wasm`, and where the arrays in its memory are. `effect export` generated this. */",
    `export const card = ${prettyJson(card)}`,
    `export const places = ${prettyJson(places)}`,
    `export const normalisation = ${JSON.stringify(constants)}\n`,
  ].join("\n")
  return { wasm: bytes, card, cardModule }
}

/**
 * Returns the states, with zeros instead of all numbers that the policy does not read, such as the weights of a critic:
 * zeros compress well.
 */
const readByPolicy = (
  spec: ProgramSpec,
  states: Readonly<Record<string, Float32Array>>,
): Readonly<Record<string, Float32Array>> => {
  const order = topologicalOrder(rootsOf(spec))
  return Record.map(states, (all, name) => {
    const users = order.filter(({ inputs }) => inputs.some(({ op }) => op.kind === "state" && op.name === name))
    const read = new Float32Array(all.length)
    for (const { op, shape } of users) {
      const [start, end] =
        op.kind === "slice" && op.starts.length === 1 ? [op.starts[0], op.starts[0] + shape[0]] : [0, all.length]
      read.set(all.subarray(start, end), start)
    }
    return read
  })
}

const placeOf = (place: ModulePlace | undefined): Place | null =>
  place === undefined ? null : { address: place.address, length: place.length }

const cardOf = ({ algorithm, env, step, observationSpace, actionSpace, spec }: TrainedPolicy, name: string): Card => {
  const space = unmasked(observationSpace)
  return {
    name,
    algorithm,
    environment: env,
    step,
    observation: {
      shape: space._tag === "Box" ? space.shape : [sizeOf(space)],
      schema: jsonSchema(observationSchemaOf(space)),
      parts: space._tag === "Box" ? null : partsIn(space, []),
    },
    action: actionOf(actionSpace),
    memory: spec.inputs.memory?.shape[1] ?? 0,
    mask: maskSizeOf(observationSpace),
  }
}

const finite = (bound: number): number | null => (Number.isFinite(bound) ? bound : null)

/** Lists the parts of a space that have no parts of their own, in the order of their numbers. */
const partsIn = (space: Space, path: Part["path"]): ReadonlyArray<Part> => {
  switch (space._tag) {
    case "Dict":
      return Object.entries(space.parts).flatMap(([name, part]) => partsIn(part, [...path, name]))
    case "Tuple":
      return space.parts.flatMap((part, index) => partsIn(part, [...path, index]))
    case "Box":
      return [{ path, shape: space.shape, options: null }]
    default:
      return [{ path, shape: space._tag === "Discrete" ? [] : [sizeOf(space)], options: optionsOf(space) ?? null }]
  }
}

const actionOf = (space: ActionSpace): Card["action"] => {
  switch (space._tag) {
    case "Discrete":
      return { kind: "discrete", choices: space.n }
    case "MultiDiscrete":
      return { kind: "choices", sizes: space.sizes }
    case "MultiBinary":
      return { kind: "switches", count: space.n }
    case "Box":
      return { kind: "continuous", shape: space.shape, low: space.low.map(finite), high: space.high.map(finite) }
  }
}

/** The scripts that are the same for every policy. `scripts-node.ts` reads them. */
export interface Scripts {
  readonly policy: Uint8Array
  readonly worker: Uint8Array
}

/** The compatibility date of the worker, which fixes the behaviour of its runtime. */
const compatibilityDate = "2026-01-01"

/** Returns the name of a worker: letters in lower case, digits and hyphens, at most 63. */
const workerName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "") || "policy"

/** Returns the files of the folder by name. */
export const workerFiles = (
  policy: TrainedPolicy,
  { name, scripts }: { readonly name: string; readonly scripts: Scripts },
): Readonly<Record<string, Uint8Array>> => {
  const { wasm, card, cardModule } = compilePolicy(policy, name)
  const texts = {
    "card.js": cardModule,
    "policy.d.ts": declarations(card),
    "package.json": prettyJson({ name: workerName(name), private: true, type: "module" }),
    "wrangler.toml": `name = "${workerName(name)}"\nmain = "worker.js"\ncompatibility_date = "${compatibilityDate}"\n`,
    "workerd.capnp": workerdConfig,
    "README.md": readme(card, sizeOf(unmasked(policy.observationSpace))),
  }
  return {
    "policy.wasm": wasm,
    "policy.js": scripts.policy,
    "worker.js": scripts.worker,
    ...Object.fromEntries(Object.entries(texts).map(([file, text]) => [file, utf8.encode(text)])),
  }
}

const workerdConfig = `# Serves the worker by \`npx workerd serve workerd.capnp\`, on a machine of your own.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "policy", worker = .policy)],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "policy")],
);

const policy :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "policy.js", esModule = embed "policy.js"),
    (name = "card.js", esModule = embed "card.js"),
    (name = "policy.wasm", wasm = embed "policy.wasm"),
  ],
  compatibilityDate = "${compatibilityDate}",
);
`

/** Returns an action as the README shows it. */
const answerOf = (action: Card["action"]): string => {
  switch (action.kind) {
    case "discrete":
      return "0"
    case "choices":
      return `[${action.sizes.length > 1 ? "0, …" : "0"}]`
    case "switches":
      return `[${action.count > 1 ? "1, …" : "1"}]`
    case "continuous":
      return `[${action.low.length > 1 ? "0.1, …" : "0.1"}]`
  }
}

const describedAction = (action: Card["action"]): string => {
  switch (action.kind) {
    case "discrete":
      return `the number of the best of ${action.choices} actions, from 0`
    case "choices":
      return `the best of [${action.sizes.join(", ")}] options for each choice, from 0`
    case "switches":
      return `${action.count} zeros and ones`
    case "continuous":
      return `the best action, of shape [${action.shape.join(", ")}], within the bounds of the env`
  }
}

const readme = (card: Card, size: number): string => {
  const { name, algorithm, environment, step, observation, action, memory, mask } = card
  const example = JSON.stringify({ observation: Array.from({ length: Math.min(size, 4) }, () => 0) })
  const request = size > 4 ? example.replace("]", ", …]") : example
  const answer = answerOf(action)
  const remembers =
    memory === 0
      ? ""
      : `
The policy has a memory of ${memory} numbers: send \`memory\` of each answer back with the next observation (\`memories\` in a
batch). Leave it out when an episode begins.
`
  return `# ${markdownText(name)}

The policy that ${markdownText(algorithm)} learned in ${markdownText(environment)}, after ${step} steps of training, as an edge worker.

\`\`\`sh
npx wrangler deploy                      # to Cloudflare Workers
npx wrangler dev                         # on this machine, or without an account: npx workerd serve workerd.capnp
curl http://localhost:8787/              # the policy's card
curl http://localhost:8787/act -d '${request}'
\`\`\`

An answer is \`{"action": ${answer}${memory === 0 ? "" : ', "memory": […]'}}\`: ${describedAction(action)}.
${
  mask === 0
    ? ""
    : `Send \`mask\` with an observation (\`masks\` in a batch) to say which of the ${mask} choices are allowed, by a 1 for each, else 0; \`"all"\` allows all. Without a mask, it answers 400.\n`
}The observation is as the env gives it, of shape [${observation.shape.join(", ")}], nested or flat; scaling and clipping happen inside.
\`{"observations": [[…], …]}\` asks for several actions at once. A wrong request is answered by status 400, 404, 405 or 413 and \`{"error": "…"}\`.
${remembers}
\`policy.js\` acts without HTTP, wherever JavaScript runs:

\`\`\`js
import { instantiate } from "./policy.js"

const { act } = instantiate(await WebAssembly.compileStreaming(fetch("policy.wasm"))) // a page; in Node, read the file
const { action } = act(observation)
\`\`\`
`
}
