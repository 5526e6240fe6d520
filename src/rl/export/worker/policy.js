/**
 * Acts by the policy in `policy.wasm`. It needs no package, and runs in edge workers, browsers, Node, Deno and Bun:
 *
 *   const { act } = instantiate(await WebAssembly.compile(bytes))
 *   const { action } = act([0.01, 0.2, -0.03, 0.1])
 */
import { card, normalisation, places } from "./card.js"

export { card }

/** Reports an observation or a memory that the policy cannot read. The message is one line for people. */
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

/**
 * Copies arrays that are nested as `lengths` says, to `target` from the index `at` on. Returns the index after the
 * copied numbers.
 */
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

const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1)

/** Fills `target`, from the index `at` on, from a flat array of numbers, or from arrays nested as `shape` says. */
const fill = (target, value, where, shape, at = 0) => {
  const isNested = shape.length > 1 && isList(value) && isList(value[0])
  return copyNumbers(target, at, value, where, isNested ? shape : [sizeOf(shape)], shape)
}

/** The number of elements of an observation. In the row that the policy reads, the action mask follows. */
const size = places.observations.length - card.mask

/** Replaces the booleans in a list by zeros and ones. */
const withoutBooleans = (value) =>
  isList(value) ? Array.from(value, (element) => (typeof element === "boolean" ? Number(element) : element)) : value

const placeIn = (path) => path.map((name) => (typeof name === "number" ? `[${name}]` : `.${name}`)).join("")

/** Fills `target` with the parts of an observation, and checks that choices are among their options. */
const fillParts = (target, value, parts) => {
  const isFlat = isList(value) && value.length === size && value.every?.(isNumber)
  if (isFlat) fill(target, value, "observation", [size])
  let at = 0
  for (const { path, shape, options } of parts) {
    const where = `observation${placeIn(path)}`
    const length = sizeOf(shape)
    if (!isFlat) {
      let own = value
      for (const name of path)
        own = typeof own === "object" && own !== null && Object.hasOwn(own, name) ? own[name] : undefined
      if (shape.length === 0) fill(target, [own], where, [1], at)
      else fill(target, options === null ? own : withoutBooleans(own), where, shape, at)
    }
    for (let index = 0; options !== null && index < length; index++) {
      const choice = target[at + index]
      if (choice >>> 0 === choice && choice < options[index]) continue
      const element = shape.length === 0 ? where : `${where}[${index}]`
      throw new PolicyError(`${element}: expected a whole number from 0 to ${options[index] - 1}, found ${choice}`)
    }
    at += length
  }
}

const fillObservation = (target, value) => {
  const { parts, shape } = card.observation
  if (parts === null) fill(target, value, "observation", shape)
  else fillParts(target, value, parts)
}

/** Writes the action mask after the observation; "all" allows everything. */
const fillMask = (target, mask) => {
  if (mask === "all") return target.fill(1, size)
  if (mask === null)
    throw new PolicyError(
      `mask: expected ${card.mask} zeros and ones, a 1 for each allowed choice, or "all"; found none`,
    )
  fill(target, withoutBooleans(mask), "mask", [card.mask], size)
  const { action } = card
  const sizes = action.kind === "discrete" ? [action.choices] : action.kind === "choices" ? action.sizes : []
  let at = 0
  for (const count of sizes) {
    let allowed = 0
    for (let index = at; index < at + count; index++) {
      const element = target[size + index]
      if (element !== 0 && element !== 1) throw new PolicyError(`mask[${index}]: expected 0 or 1, found ${element}`)
      allowed += element
    }
    if (allowed === 0)
      throw new PolicyError(`mask: expected an allowed choice among ${at} to ${at + count - 1}, found none`)
    at += count
  }
}

/** Checks an observation without acting, as a Standard Schema (https://standardschema.dev). The value is flat. */
export const observation = {
  "~standard": {
    version: 1,
    vendor: "effect-rl",
    validate: (value) => {
      const numbers = new Array(size)
      try {
        fillObservation(numbers, value)
        return { value: numbers }
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        // The message begins with the position of the wrong value, such as observation[1][2].
        const [where] = error.message.split(":")
        return { issues: [{ message: error.message, path: Array.from(where.matchAll(/\d+/g), Number) }] }
      }
    },
  },
}

const kept = new Set(normalisation?.kept)

/** Normalises observations as the training did, in double precision. */
const normalise = (observations) => {
  if (normalisation === null) return
  const { mean, factor, clip } = normalisation
  for (let index = 0; index < observations.length; index++) {
    if (kept.has(index)) continue
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
  const actions = view(card.action.kind === "continuous" ? Float32Array : Int32Array, places.actions)
  const memoryIn = view(Float32Array, places.memory)
  const memoryOut = view(Float32Array, places.nextMemory)
  const run = exports["run:policy"]
  exports["prepare:policy"]()

  const act = (observation, memory = null, mask = null) => {
    fillObservation(observations, observation)
    if (card.mask > 0) fillMask(observations, mask)
    else if (mask !== null) throw new PolicyError("mask: this policy takes no action mask; leave it out")
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
