/**
 * Acts by the policy in `policy.wasm`. It needs no package, and runs in edge workers, browsers, Node, Deno and Bun:
 *
 *   const { act } = instantiate(await WebAssembly.compile(bytes))
 *   const { action } = act([0.01, 0.2, -0.03, 0.1])
 */
import { card, normalisation, places } from "./card.js"

export { card }

/** The error of an observation or a memory that the policy cannot read. The message is one line for people. */
export class PolicyError extends Error {
  name = "PolicyError"
}

const isList = (value) => Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

const isNumber = (value) => typeof value === "number" && Number.isFinite(Math.fround(value))

/** Describes a wrong value in a few words. */
const shown = (value) => {
  if (isList(value)) return `${value.length} ${value.length === 1 ? "element" : "elements"}`
  if (typeof value === "object" && value !== null) return "an object"
  if (typeof value === "string") return value.length > 40 ? "a long text" : JSON.stringify(value)
  return String(value)
}

const wanted = (shape) =>
  shape.length === 1
    ? `${shape[0]} ${shape[0] === 1 ? "number" : "numbers"}`
    : `${shape.reduce((size, length) => size * length, 1)} numbers, or arrays of shape [${shape.join(", ")}]`

/** Copies the numbers of arrays, nested as `lengths`, to `target` from the index `at`. Returns the index after them. */
const copyNumbers = (target, at, value, where, lengths, shape) => {
  const [length, ...inner] = lengths
  if (!isList(value) || value.length !== length) {
    throw new PolicyError(`${where}: expected ${wanted(inner.length > 0 ? lengths : shape)}, found ${shown(value)}`)
  }
  if (inner.length > 0) {
    let next = at
    for (let index = 0; index < length; index++) {
      next = copyNumbers(target, next, value[index], `${where}[${index}]`, inner, inner)
    }
    return next
  }
  for (let index = 0; index < length; index++) {
    if (!isNumber(value[index])) {
      throw new PolicyError(`${where}[${index}]: expected a finite number, found ${shown(value[index])}`)
    }
    target[at + index] = value[index]
  }
  return at + length
}

/** Fills `target` from an array of as many numbers, or from arrays that are nested as `shape`. */
const fill = (target, value, where, shape) => {
  const isNested = shape.length > 1 && isList(value) && isList(value[0])
  copyNumbers(target, 0, value, where, isNested ? shape : [target.length], shape)
}

/** Checks an observation without acting, as a Standard Schema (https://standardschema.dev). The value is flat. */
export const observation = {
  "~standard": {
    version: 1,
    vendor: "effect-rl",
    validate: (value) => {
      const numbers = new Array(places.observations.length)
      try {
        fill(numbers, value, "observation", card.observation.shape)
        return { value: numbers }
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        // The message begins with the place, such as observation[1][2].
        const [where] = error.message.split(":")
        return { issues: [{ message: error.message, path: Array.from(where.matchAll(/\d+/g), Number) }] }
      }
    },
  },
}

/** Normalises observations as the training did, in double precision. */
const normalise = (observations) => {
  if (normalisation === null) return
  const { mean, factor, clip } = normalisation
  for (let index = 0; index < observations.length; index++) {
    const value = (observations[index] - mean[index]) * factor[index]
    observations[index] = Math.min(Math.max(value, -clip), clip)
  }
}

/** Makes the policy from the compiled `policy.wasm`. */
export const instantiate = (module) => {
  /** @type {Record<string, any>} */
  const exports = new WebAssembly.Instance(module).exports
  const { buffer } = exports.memory
  const view = (Kind, place) => (place === null ? null : new Kind(buffer, place.address, place.length))
  const observations = view(Float32Array, places.observations)
  const actions = view(card.action.kind === "discrete" ? Int32Array : Float32Array, places.actions)
  const memoryIn = view(Float32Array, places.memory)
  const memoryOut = view(Float32Array, places.nextMemory)
  const run = exports["run:policy"]
  exports["prepare:policy"]()

  const act = (observation, memory = null) => {
    fill(observations, observation, "observation", card.observation.shape)
    if (memoryIn !== null) {
      if (memory === null) memoryIn.fill(0)
      else fill(memoryIn, memory, "memory", [card.memory])
    } else if (memory !== null) {
      throw new PolicyError("memory: this policy has no memory; leave it out")
    }
    normalise(observations)
    run()
    const action = card.action.kind === "discrete" ? actions[0] : Array.from(actions)
    return memoryOut === null ? { action } : { action, memory: Array.from(memoryOut) }
  }
  return { card, act }
}
